"""What is known of a module beside its text: Python objects that go with it.

A companion is copied when `clone(module)` copies the module, is never printed, and is freed with the module:

    companion(module, History).runs.append(run)
    companion(clone(module), History).runs         # the same runs, whose values are those of the clone

xDSL lets an operation have attributes only, which are printed, and tells nobody which value of a clone is which. So a
module that has companions has a method `clone` of its own, which does the same.
"""

from collections.abc import Sequence
from types import MethodType
from typing import Any, Protocol, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from sdy.ir import building
from sdy.ir.walking import operations

_COMPANIONS = "_sdy_companions"

PartT = TypeVar("PartT", bound=Operation | SSAValue)


class Copies:
    """What each part of a module has become in a copy of it."""

    def __init__(self, module: ModuleOp, copy: ModuleOp) -> None:
        self._copies: dict[int, Operation | SSAValue] = {}
        """By `id`."""
        for old, new in zip(operations(module), operations(copy), strict=True):
            self._add(old, new)

    def of(self, part: PartT) -> PartT:
        """What `part` has become; a copy that stands alone where it was in the module no more."""
        if id(part) not in self._copies:
            self._add_gone(part)
        if id(part) not in self._copies:  # its operation or block has another value in its place
            self._copies[id(part)] = _alone(part)
        return cast(PartT, self._copies[id(part)])

    def _add(self, old: Operation, new: Operation) -> None:
        self._copies[id(old)] = new
        self._add_values(old.results, new.results)
        for old_region, new_region in zip(old.regions, new.regions, strict=True):
            for old_block, new_block in zip(old_region.blocks, new_region.blocks, strict=True):
                self._add_values(old_block.args, new_block.args)

    def _add_values(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        self._copies.update(zip(map(id, old), new, strict=True))

    def _add_gone(self, part: Operation | SSAValue) -> None:
        """Add what was erased, without operands or what is in its regions: all that would lead to the module."""
        if isinstance(part, BlockArgument) and part.block.parent_op() is None:
            self._add_values(part.block.args, Block(arg_types=part.block.arg_types).args)
            return
        old: Operation | Block | None = part if isinstance(part, Operation) else part.owner
        if isinstance(old, Block):
            old = old.parent_op()
        if old is None or id(old) in self._copies:
            return
        new = old.clone_without_regions(clone_operands=False)
        for old_region, new_region in zip(old.regions, new.regions, strict=True):
            for block in old_region.blocks:
                new_region.add_block(Block(arg_types=block.arg_types))
        self._add(old, new)


def _alone(part: Operation | SSAValue) -> SSAValue:
    """A value like `part` of an operation or a block that stands alone."""
    if isinstance(part, OpResult):
        return OpResult(part.type, part.op.clone_without_regions(clone_operands=False), part.index)
    assert isinstance(part, BlockArgument)
    return BlockArgument(part.type, Block(), part.index)


class Companion(Protocol):
    """What can go with a module: it begins empty."""

    def __init__(self) -> None: ...

    def copied(self, copies: Copies) -> Self:
        """The same for a copy of the module, which changes without this one."""
        ...


CompanionT = TypeVar("CompanionT", bound=Companion)


def companion(module: ModuleOp, companion_class: type[CompanionT]) -> CompanionT:
    """The companion of this class that `module` has, an empty one to begin with."""
    companions = _companions(module)
    if companion_class not in companions:
        companions[companion_class] = companion_class()
    return companions[companion_class]


def clone(module: ModuleOp) -> ModuleOp:
    """A copy of `module` and its companions."""
    copy = clone_alone(module)
    if _COMPANIONS in vars(module):
        _copy_companions(module, copy)
    return copy


def clone_alone(module: ModuleOp) -> ModuleOp:
    """A copy of `module` without companions, which takes half the time: for what nobody will ask about its past."""
    return cast(ModuleOp, building.clone(module))


def _companions(module: ModuleOp) -> dict[type[Any], Any]:
    parts = vars(module)
    if _COMPANIONS not in parts:
        parts[_COMPANIONS] = {}
        parts["clone"] = MethodType(_clone_with_companions, module)
    return parts[_COMPANIONS]


def _clone_with_companions(module: ModuleOp, *arguments: Any, **options: Any) -> ModuleOp:
    """The method, called as xDSL calls it."""
    copy = type(module).clone(module, *arguments, **options)
    _copy_companions(module, copy)
    return copy


def _copy_companions(module: ModuleOp, copy: ModuleOp) -> None:
    copies = Copies(module, copy)
    _companions(copy).update({kind: kept.copied(copies) for kind, kept in _companions(module).items()})
