"""Whether a module is what its operations say it must be.

xDSL's `Operation.verify` says what is wrong but not where; here the operation is named and pointed at. What each
operation says of itself is in its definition and its own `verify_`; of most operations that depends on their key
alone, so that it is asked once for all that share it. The rest holds for all operations: blocks end in a terminator,
branches stay in their region, and a value is defined where it can be seen, before it is used.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from inspect import getclosurevars
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOpSymbolUserOpInterface, FuncOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, NoTerminator, OpTrait, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.ir.operation_key import MemoizedByKey, is_verified_by_key
from sdy.ir.walking import operations_at_top, operations_in_block
from sdy.text.large_stack import again_on_large_stack
from sdy.text.verification.builtin_checks import CHECKS
from sdy.text.verification.definition_checks import SINGLE_BLOCK, check_beyond_key, check_definition
from sdy.text.verification.repeated_checks import AttributeCheck, BodyCheck, is_verified_by_body
from sdy.text.verification.visibility import check_visibility, is_isolated

_known: WeakKeyDictionary[Operation, MemoizedByKey[None]] = WeakKeyDictionary()
"""What was right by its key in each module that is still there: it is verified when it is read, and after passes."""


_CHECKED_BY_OTHERS = (CallOpSymbolUserOpInterface, IsolatedFromAbove, IsTerminator, SingleBlockImplicitTerminator)
"""Traits of whose checks there are others here, in MLIR's words."""


@gc_control.paused()
@again_on_large_stack
def verify(top: Operation) -> None:
    """Raises DiagnosticError for `top`, or for the first operation that is not valid of each function that it has.

    What holds for functions holds for all operations that are isolated from above, as in MLIR.
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
    """As `verify`, of a `module` in which all but `parts` are valid as their like is, which is among these.

    `uses_follow_definitions` says of all values that they were defined, in the same region or around it, when used.
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


def is_valid_as_its_like(op: Operation) -> bool:
    """Whether `op` is valid wherever it stands if an operation is that differs but in its operands.

    Its regions, if any, are to use nothing from outside.
    """
    of_itself = is_verified_by_key(op.__class__) or is_verified_by_body(op.__class__)
    return of_itself and not op.attributes and not _ends_block(op.__class__)


class _Checks:
    """What is checked of each operation in turn; what was right is remembered."""

    def __init__(self, by_key: MemoizedByKey[None]) -> None:
        self._attributes = AttributeCheck()
        self._by_key = by_key
        self._beyond_key = BodyCheck(_check_beyond_key)

    @classmethod
    def of(cls, top: Operation) -> "_Checks":
        return cls(_known.setdefault(top, MemoizedByKey(_check_by_key)))

    def __call__(self, op: Operation) -> None:
        if op.attributes or op.__class__ is FuncOp:
            self._attributes(op)
        self._by_key(op)
        if _looks_around(op.__class__):
            self._beyond_key(op)
        if _ends_block(op.__class__):
            _check_place(op)


def _verify_part(part: Operation, check: _Checks) -> list[Operation]:
    """Verify `part` but for the isolated operations in it, and return these."""
    isolated: list[Operation] = []
    for op in _with_nested(part, isolated):
        check(op)
    check_visibility(part)
    return isolated


def _with_nested(top: Operation, isolated: list[Operation]) -> Iterator[Operation]:
    """All operations in `top`, each before what it contains; those in it that are isolated are put aside."""
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
    """Check what depends on the key of an operation alone."""
    op_class = op.__class__
    if issubclass(op_class, IRDLOperation):
        check_definition(op, op_class.get_irdl_definition())
    if not _looks_around(op_class):
        _check_itself(op)


def _check_beyond_key(op: Operation) -> None:
    if isinstance(op, IRDLOperation):
        check_beyond_key(op, op.get_irdl_definition())
    _check_itself(op)
    _check_blocks(op)


@cache
def _looks_around(op_class: type[Operation]) -> bool:
    return not is_verified_by_key(op_class)


@cache
def _ends_block(op_class: type[Operation]) -> bool:
    """Whether operations of a class may have a place where alone they can stand."""
    may_branch = not issubclass(op_class, IRDLOperation) or bool(op_class.get_irdl_definition().successors)
    return may_branch or op_class.has_trait(IsTerminator)


def _check_itself(op: Operation) -> None:
    """Check what an operation says of itself beyond its definition: by its own verifier, by its traits."""
    try:
        for check in _checks(op.__class__):
            check(op)
    except VerifyException as problem:
        raise op_error(op, str(problem)) from problem


@cache
def _checks(op_class: type[Operation]) -> tuple[Callable[[Operation], None], ...]:
    """Checks of an operation in MLIR's order: those that look into its regions come last.

    What is visible, and which operation is the last of a block, is checked for all operations in the same way.
    """
    traits = sorted(
        (
            trait
            for trait in op_class.get_traits_of_type(OpTrait)
            if type(trait).verify is not OpTrait.verify and not isinstance(trait, _CHECKED_BY_OTHERS)
        ),
        key=str,
    )
    of_traits = [partial(_check_parent, trait) if isinstance(trait, HasParent) else trait.verify for trait in traits]
    in_words_of_mlir = [CHECKS[op_class.name]] if op_class.name in CHECKS else []
    terminator = _terminator_of(op_class)
    of_regions = [] if terminator is None else [partial(_check_terminators, terminator)]
    return (*in_words_of_mlir, *of_traits, _own_verifier(op_class), *of_regions)


def _check_parent(trait: HasParent, op: Operation) -> None:
    parent = op.parent_op()
    if parent is not None and not isinstance(parent, trait.op_types):
        names = ", ".join(kind.name for kind in trait.op_types)
        raise op_error(op, f"expects parent op {'' if len(trait.op_types) == 1 else 'to be one of '}'{names}'")


def _check_terminators(terminator: str, op: Operation) -> None:
    """Refuse a region that ends with another operation than the one named `terminator`."""
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None and block.last_op.name != terminator:
                _check_blocks(op)
                _verify_first(operations_in_block(block))
                raise op_error(op, f"expects regions to end with '{terminator}', found '{block.last_op.name}'")


def _terminator_of(op_class: type[Operation]) -> str | None:
    """The name of the operation that ends every region of operations of this class."""
    if op_class.name.startswith("stablehlo.") and issubclass(op_class, IRDLOperation):
        regions = op_class.get_irdl_definition().regions
        return "stablehlo.return" if any(isinstance(region, SINGLE_BLOCK) for _, region in regions) else None
    trait = next(iter(op_class.get_traits_of_type(SingleBlockImplicitTerminator)), None)
    return None if trait is None else trait.op_type.name


def _own_verifier(op_class: type[Operation]) -> Callable[[Operation], None]:
    """`verify_` as it was written for a class, without the checks of the definition that xDSL adds to it."""
    verifier = op_class.verify_
    while (written := getclosurevars(verifier).nonlocals.get("custom_verify")) is not None:
        verifier = written
    return verifier


def _check_place(op: Operation) -> None:
    if op.next_op is not None:
        if op.successors:
            raise op_error(op, "with block successors must terminate its parent block")
        if op.has_trait(IsTerminator, value_if_unregistered=False):
            raise op_error(op, "must be the last operation in the parent block")
    for successor in op.successors:
        if op.parent is None or successor.parent is not op.parent.parent:
            raise op_error(op, "branching to block of a different region")


def _verify_first(nested: Iterable[Operation]) -> None:
    """Verify operations of a block that is wrong itself, which MLIR finds after their mistakes."""
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
                _verify_first(nested for nested in operations_in_block(block) if not is_isolated(nested))
                raise error(last, f"'{last.name}' op block with no terminator")
