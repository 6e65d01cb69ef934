"""The verifier, with MLIR's messages.

xDSL's `Operation.verify` reports an error without its place; this verifier names the operation and its location.
Operation-specific checks come from the definition and from `verify_`. For most operations they depend on the key alone
(see `sdy.ir.operation_key`), so that they run once per key. The structural checks apply to all operations: a block ends
with a terminator, a branch stays in its region, and a definition dominates its uses.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOpSymbolUserOpInterface, FuncOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, NoTerminator, OpTrait, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.ir.fast_access import own_verifier
from sdy.ir.operation_key import MemoizedByKey, is_verified_by_key
from sdy.ir.walking import operations_at_top, operations_in_block
from sdy.text.large_stack import again_on_large_stack
from sdy.text.verification.builtin_checks import CHECKS
from sdy.text.verification.definition_checks import SINGLE_BLOCK, check_beyond_key, check_definition
from sdy.text.verification.memoized_checks import AttributeCheck, BodyCheck, is_verified_by_body
from sdy.text.verification.visibility import check_visibility, is_isolated

_verified_keys: WeakKeyDictionary[Operation, MemoizedByKey[None]] = WeakKeyDictionary()
"""Keys already verified, per live module: a module is verified when it is parsed and again after passes."""


_CHECKED_ELSEWHERE = (CallOpSymbolUserOpInterface, IsolatedFromAbove, IsTerminator, SingleBlockImplicitTerminator)
"""Traits that this package checks itself, with MLIR's messages."""


@gc_control.paused()
@again_on_large_stack
def verify(top: Operation) -> None:
    """Verify an operation and everything nested in it.

    Raises:
        DiagnosticError: With the first error of each function and of each other operation isolated from above, as in
            MLIR.
    """
    checks = _Checks.of(top)
    problems: list[DiagnosticError] = []
    isolated = [top]
    for part in isolated:
        try:
            isolated += _verify_part(part, checks)
        except DiagnosticError as problem:
            problems.append(problem)
    if problems:
        raise DiagnosticError(*(diagnostic for problem in problems for diagnostic in problem.diagnostics))


@gc_control.paused()
@again_on_large_stack
def verify_parts(module: ModuleOp, parts: Iterable[Operation], uses_follow_definitions: bool) -> None:
    """Verify a parsed module in which only `parts` may be invalid.

    Args:
        module: The module.
        parts: The operations to check. Every other operation has its key in common with one of these.
        uses_follow_definitions: Whether the parser has seen each value's definition before its first use, in the same
            region or one around it, so that dominance need not be checked.

    Raises:
        DiagnosticError: As `verify` does.
    """
    checks = _Checks.of(module)
    is_flat = True
    try:
        checks(module)
        for op in parts:
            checks(op)
            is_flat = is_flat and not (op.regions and is_isolated(op) and op.parent_op() not in (module, None))
    except DiagnosticError:
        verify(module)
        raise
    if not (uses_follow_definitions and is_flat) or any(op.results for op in operations_at_top(module)):
        verify(module)


def is_valid_with_other_operands(op: Operation) -> bool:
    """Return whether a copy of a valid `op` with other operands of the same types is valid anywhere.

    The regions of `op`, if any, must not capture values.
    """
    is_local = is_verified_by_key(op.__class__) or is_verified_by_body(op.__class__)
    return is_local and not op.attributes and not _may_be_terminator(op.__class__)


class _Checks:
    """The memoized checks of a single operation."""

    def __init__(self, by_key: MemoizedByKey[None]) -> None:
        self._attributes = AttributeCheck()
        self._by_key = by_key
        self._beyond_key = BodyCheck(_check_beyond_key)

    @classmethod
    def of(cls, top: Operation) -> "_Checks":
        return cls(_verified_keys.setdefault(top, MemoizedByKey(_check_by_key)))

    def __call__(self, op: Operation) -> None:
        if op.attributes or op.__class__ is FuncOp:
            self._attributes(op)
        self._by_key(op)
        if _needs_more_than_key(op.__class__):
            self._beyond_key(op)
        if _may_be_terminator(op.__class__):
            _check_terminator_position(op)


def _verify_part(part: Operation, check: _Checks) -> list[Operation]:
    """Verify `part` except for the isolated operations nested in it, which are returned."""
    isolated: list[Operation] = []
    for op in _walk_part(part, isolated):
        check(op)
    check_visibility(part)
    return isolated


def _walk_part(top: Operation, isolated: list[Operation]) -> Iterator[Operation]:
    """Yield the operations of `top` in pre-order; nested isolated operations are added to `isolated` instead."""
    waiting = [iter((top,))]
    while waiting:
        for op in waiting[-1]:
            if op is not top and op.regions and is_isolated(op):
                isolated.append(op)
                continue
            yield op
            if op.regions:
                waiting.append(
                    nested for region in op.regions for block in region.blocks for nested in operations_in_block(block)
                )
                break
        else:
            waiting.pop()


def _check_by_key(op: Operation) -> None:
    """Run the checks that depend only on the operation's key."""
    op_class = op.__class__
    if issubclass(op_class, IRDLOperation):
        check_definition(op, op_class.get_irdl_definition())
    if not _needs_more_than_key(op_class):
        _check_own(op)


def _check_beyond_key(op: Operation) -> None:
    if isinstance(op, IRDLOperation):
        check_beyond_key(op, op.get_irdl_definition())
    _check_own(op)
    _check_blocks(op)


@cache
def _needs_more_than_key(op_class: type[Operation]) -> bool:
    return not is_verified_by_key(op_class)


@cache
def _may_be_terminator(op_class: type[Operation]) -> bool:
    """Return whether a class's operations may be terminators, which must be last in their block."""
    may_branch = not issubclass(op_class, IRDLOperation) or bool(op_class.get_irdl_definition().successors)
    return may_branch or op_class.has_trait(IsTerminator)


def _check_own(op: Operation) -> None:
    """Run the operation's own verifier and those of its traits."""
    try:
        for check in _checks(op.__class__):
            check(op)
    except VerifyException as problem:
        raise op_error(op, str(problem)) from problem


@cache
def _checks(op_class: type[Operation]) -> tuple[Callable[[Operation], None], ...]:
    """Return the checks of an operation class in MLIR's order: those of its regions come last.

    Dominance and the position of terminators are checked elsewhere, for all classes alike.
    """
    traits = sorted(
        (
            trait
            for trait in op_class.get_traits_of_type(OpTrait)
            if type(trait).verify is not OpTrait.verify and not isinstance(trait, _CHECKED_ELSEWHERE)
        ),
        key=str,
    )
    trait_checks = [partial(_check_parent, trait) if isinstance(trait, HasParent) else trait.verify for trait in traits]
    builtin_checks = [CHECKS[op_class.name]] if op_class.name in CHECKS else []
    terminator = _terminator_of(op_class)
    region_checks = [] if terminator is None else [partial(_check_terminators, terminator)]
    return (*builtin_checks, *trait_checks, own_verifier(op_class), *region_checks)


def _check_parent(trait: HasParent, op: Operation) -> None:
    parent = op.parent_op()
    if parent is not None and not isinstance(parent, trait.op_types):
        names = ", ".join(kind.name for kind in trait.op_types)
        raise op_error(op, f"expects parent op {'' if len(trait.op_types) == 1 else 'to be one of '}'{names}'")


def _check_terminators(terminator: str, op: Operation) -> None:
    """Raise DiagnosticError if a region ends with an operation other than `terminator`."""
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None and block.last_op.name != terminator:
                _check_blocks(op)
                _verify_nested(operations_in_block(block))
                raise op_error(op, f"expects regions to end with '{terminator}', found '{block.last_op.name}'")


def _terminator_of(op_class: type[Operation]) -> str | None:
    """Return the name of the only terminator that a class allows in its regions, None if any is allowed."""
    if op_class.name.startswith("stablehlo.") and issubclass(op_class, IRDLOperation):
        regions = op_class.get_irdl_definition().regions
        return "stablehlo.return" if any(isinstance(region, SINGLE_BLOCK) for _, region in regions) else None
    trait = next(iter(op_class.get_traits_of_type(SingleBlockImplicitTerminator)), None)
    return None if trait is None else trait.op_type.name


def _check_terminator_position(op: Operation) -> None:
    if op.next_op is not None:
        if op.successors:
            raise op_error(op, "with block successors must terminate its parent block")
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            raise op_error(op, "must be the last operation in the parent block")
    for successor in op.successors:
        if op.parent is None or successor.parent is not op.parent.parent:
            raise op_error(op, "branching to block of a different region")


def _verify_nested(nested: Iterable[Operation]) -> None:
    """Verify the operations of an invalid block: MLIR reports their errors before the block's."""
    for op in nested:
        verify(op)


def _check_blocks(op: Operation) -> None:
    if not op.regions or op.has_trait(NoTerminator):
        return
    for region in op.regions:
        for block in region.blocks:
            if (last := block.last_op) is None:
                raise error(op, "empty block: expect at least a terminator")
            if not last.has_trait(IsTerminator):
                _verify_nested(nested for nested in operations_in_block(block) if not is_isolated(nested))
                raise error(last, f"'{last.name}' op block with no terminator")
