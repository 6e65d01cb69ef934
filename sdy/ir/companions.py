"""Side tables: Python objects attached to a module and copied by `clone`.

A companion is copied when `clone(module)` copies the module, is never printed, and is freed with the module:

    companion(module, History).runs.append(run)
    companion(clone(module), History).runs         # the same runs, with the values of the clone

xDSL operations can only hold attributes, which are printed, and its `clone` does not return the mapping from values to
their clones. A module with companions therefore gets instance methods `clone` and `__deepcopy__` that copy them, too.
Pickles have no companions.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Protocol, Self, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from sdy.ir import building
from sdy.ir.walking import operations

_COMPANIONS = "_sdy_companions"

PartT = TypeVar("PartT", bound=Operation | SSAValue)


class Copies:
    """Mapping from the operations and values of a module to those of a copy of it."""

    def __init__(self, module: ModuleOp, copy: ModuleOp) -> None:
        self._module, self._copy = module, copy

    @cached_property
    def _copies(self) -> dict[int, Operation | SSAValue]:
        """The copies by `id` of the original, built at the first question: most side tables are empty."""
        copies: dict[int, Operation | SSAValue] = {}
        for old, new in zip(operations(self._module), operations(self._copy), strict=True):
            _add(copies, old, new)
        return copies

    def of(self, part: PartT) -> PartT:
        """Return the copy of `part`; a new detached one if `part` has been erased from the module."""
        if id(part) not in self._copies:
            self._add_erased(part)
        if id(part) not in self._copies:  # its operation or block has another value at its index
            self._copies[id(part)] = _detached(part)
        return cast(PartT, self._copies[id(part)])

    def _add_erased(self, part: Operation | SSAValue) -> None:
        """Add a copy of an erased operation or value.

        Operands and region contents are not copied, since they may refer to the module.
        """
        if isinstance(part, BlockArgument) and part.block.parent_op() is None:
            _add_values(self._copies, part.block.args, Block(arg_types=part.block.arg_types).args)
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
        _add(self._copies, old, new)


def _add(copies: dict[int, Operation | SSAValue], old: Operation, new: Operation) -> None:
    """Add an operation, its results, and the arguments of its blocks."""
    copies[id(old)] = new
    _add_values(copies, old.results, new.results)
    for old_region, new_region in zip(old.regions, new.regions, strict=True):
        for old_block, new_block in zip(old_region.blocks, new_region.blocks, strict=True):
            _add_values(copies, old_block.args, new_block.args)


def _add_values(copies: dict[int, Operation | SSAValue], old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
    copies.update(zip(map(id, old), new, strict=True))


def _detached(part: Operation | SSAValue) -> SSAValue:
    """Return a value like `part` with a detached owner."""
    if isinstance(part, OpResult):
        return OpResult(part.type, part.op.clone_without_regions(clone_operands=False), part.index)
    assert isinstance(part, BlockArgument)
    return BlockArgument(part.type, Block(), part.index)


class Companion(Protocol):
    """Interface of side tables, which are created empty."""

    def __init__(self) -> None: ...

    def copied(self, copies: Copies) -> Self:
        """Return an independent copy for a copy of the module."""
        ...


CompanionT = TypeVar("CompanionT", bound=Companion)


def companion(module: ModuleOp, companion_class: type[CompanionT]) -> CompanionT:
    """Return the companion of `module` of this class, creating it if needed."""
    companions = _companions(module)
    if companion_class not in companions:
        companions[companion_class] = companion_class()
    return companions[companion_class]


def clone(module: ModuleOp) -> ModuleOp:
    """Clone `module` and its companions."""
    copy = clone_alone(module)
    if _COMPANIONS in vars(module):
        _copy_companions(module, copy)
    return copy


def clone_alone(module: ModuleOp) -> ModuleOp:
    """Clone `module` without companions, in half the time, for copies whose history is not needed."""
    return cast(ModuleOp, building.clone(module))


class _Companions(dict[type[Any], Any]):
    """Companions by their class; a pickle of them is empty."""

    def __reduce__(self) -> tuple[type["_Companions"], tuple[()]]:
        return _Companions, ()


def _companions(module: ModuleOp) -> dict[type[Any], Any]:
    parts = vars(module)
    if _COMPANIONS not in parts:
        parts[_COMPANIONS] = _Companions()
        parts["clone"] = partial(_clone_with_companions, module)
        parts["__deepcopy__"] = partial(_deep_copy, module)
    return parts[_COMPANIONS]


def _clone_with_companions(module: ModuleOp, *arguments: Any, **options: Any) -> ModuleOp:
    """Method `clone` of modules with companions, with xDSL's signature."""
    copy = type(module).clone(module, *arguments, **options)
    _copy_companions(module, copy)
    return copy


def _deep_copy(module: ModuleOp, memo: dict[int, Any]) -> ModuleOp:
    return memo.setdefault(id(module), clone(module))


def _copy_companions(module: ModuleOp, copy: ModuleOp) -> None:
    copies = Copies(module, copy)
    _companions(copy).update({kind: table.copied(copies) for kind, table in _companions(module).items()})
