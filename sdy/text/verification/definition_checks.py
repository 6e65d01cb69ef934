"""Verification of an operation against its IRDL definition, with MLIR's messages.

xDSL checks the same with other messages. The checks run in MLIR's order, and the first failure is reported: the numbers
of operands, results, successors and regions; the attributes; the operand types; the result types; the regions.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    AttributeDef,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    AttrSizedSegments,
    OpDef,
    OperandDef,
    OptAttributeDef,
    OptionalDef,
    OptPropertyDef,
    OptSingleBlockRegionDef,
    PropertyDef,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    RegionDef,
    ResultDef,
    SingleBlockRegionDef,
    SuccessorDef,
    VarConstraint,
    VariadicDef,
    VarSingleBlockRegionDef,
    VerificationContext,
)
from xdsl.irdl.operations import VarIRConstruct, irdl_op_verify_arg_list, irdl_op_verify_regions
from xdsl.traits import SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import op_error
from sdy.text.verification.constraint_words import describe_constraint

_Definitions = Sequence[tuple[str, OperandDef | ResultDef | RegionDef | SuccessorDef]]
_ONE = {"operand": "a single operand", "result": "one result", "region": "one region", "successor": "1 successor"}
_ANY_ARGUMENTS = RangeOf(AnyAttr())
SINGLE_BLOCK = (SingleBlockRegionDef, VarSingleBlockRegionDef, OptSingleBlockRegionDef)


def check_definition(op: Operation, definition: OpDef) -> None:
    """Check the part of an operation's definition that depends only on its key (see `sdy.ir.operation_key`).

    Raises:
        DiagnosticError: If a count, an attribute or a type violates the definition.
    """
    _check_count(op, "region", definition.regions, len(op.regions))
    _check_count(op, "result", definition.results, len(op.results))
    _check_count(op, "successor", definition.successors, len(op.successors))
    _check_count(op, "operand", definition.operands, len(op.operands))
    segments = {type(option): option for option in definition.options if isinstance(option, AttrSizedSegments)}
    operands = _groups(op, "operand", definition.operands, op.operands, segments.get(AttrSizedOperandSegments))
    results = _groups(op, "result", definition.results, op.results, segments.get(AttrSizedResultSegments))
    _check_attributes(op, definition)
    context = VerificationContext()
    same: dict[str, list[SSAValue]] = {}
    _check_types(op, "operand", definition.operands, operands, context, same)
    _check_types(op, "result", definition.results, results, context, same)
    for values in same.values():
        if any(value.type != values[0].type for value in values):
            raise op_error(op, "requires the same type for all operands and results")
    _check_values_together(op, definition)


def _check_count(op: Operation, kind: str, definitions: _Definitions, count: int) -> None:
    variadic = sum(isinstance(definition, VariadicDef) for _, definition in definitions)
    fixed = len(definitions) - variadic
    if count == fixed or (variadic and count > fixed):
        return
    found = f", but found {count}" if kind == "operand" else ""
    if variadic:
        raise op_error(op, f"expected {fixed} or more {kind}s{found}")
    if fixed > 1:
        raise op_error(op, f"expected {fixed} {kind}s{found}")
    raise op_error(op, f"requires {_ONE[kind] if fixed else f'zero {kind}s'}")


def _groups(
    op: Operation,
    kind: str,
    definitions: _Definitions,
    values: Sequence[SSAValue],
    segments: AttrSizedSegments | None,
) -> list[Sequence[SSAValue]]:
    """Return the values of each operand or result definition."""
    sizes = _group_sizes(definitions, len(values)) if segments is None else _segments(op, kind, segments, len(values))
    groups: list[Sequence[SSAValue]] = []
    start = 0
    for (_, definition), size in zip(definitions, sizes, strict=False):
        if isinstance(definition, OptionalDef) and size > 1:
            raise op_error(op, f"{kind} group starting at #{start} requires 0 or 1 element, but found {size}")
        groups.append(values[start : start + size])
        start += size
    return groups


def _group_sizes(definitions: _Definitions, count: int) -> list[int]:
    variadic = sum(isinstance(definition, VariadicDef) for _, definition in definitions)
    each = (count - len(definitions) + variadic) // variadic if variadic else 0
    return [each if isinstance(definition, VariadicDef) else 1 for _, definition in definitions]


def _segments(op: Operation, kind: str, option: AttrSizedSegments, count: int) -> Sequence[int]:
    name = option.attribute_name
    attribute = option.container(op).get(name)
    sizes: Sequence[int] = attribute.get_values() if isinstance(attribute, DenseArrayBase) else ()
    if (total := sum(sizes)) != count:
        problem = f"does not match with the total size ({total}) specified in attribute '{name}'"
        raise op_error(op, f"{kind} count ({count}) {problem}")
    return sizes


def _check_attributes(op: Operation, definition: OpDef) -> None:
    sized = {option.attribute_name for option in definition.options if isinstance(option, AttrSizedSegments)}
    defined = [(name, attribute, op.properties) for name, attribute in definition.properties.items()]
    defined += [(name, attribute, op.attributes) for name, attribute in definition.attributes.items()]
    required = (
        name
        for name, attribute, container in defined
        if name not in container and name not in sized and not isinstance(attribute, OptPropertyDef | OptAttributeDef)
    )
    if (missing := min(required, default=None)) is not None:
        raise op_error(op, f"requires attribute '{missing}'")
    for name, attribute, container in defined:
        checked = name in container and name not in sized
        if checked and (problem := attribute_problem(name, attribute, container[name])) is not None:
            raise op_error(op, problem)


def attribute_problem(name: str, definition: PropertyDef | AttributeDef, value: Attribute) -> str | None:
    """Return the error message for an attribute that violates its constraint, None if it is valid."""
    try:
        definition.constr.verify(value, VerificationContext())
    except VerifyException as problem:
        return f"attribute '{name}' failed to satisfy constraint: {describe_constraint(definition.constr) or problem}"
    return None


def _check_types(
    op: Operation,
    kind: str,
    definitions: Sequence[tuple[str, OperandDef | ResultDef]],
    groups: Sequence[Sequence[SSAValue]],
    context: VerificationContext,
    same: dict[str, list[SSAValue]],
) -> None:
    """Check the types; collect in `same` the values whose definitions share a constraint variable."""
    number = 0
    for (_, definition), values in zip(definitions, groups, strict=False):
        constraint = _constraint_of_each(definition.constr)
        if isinstance(constraint, VarConstraint):
            same.setdefault(constraint.name, []).extend(values)
            constraint = constraint.constraint
        several = isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef)
        for value in values:
            _check_type(op, f"{kind} #{number}", constraint, value.type, context, several)
            number += 1


def _constraint_of_each(constraint: RangeConstraint) -> AttrConstraint:
    """Return the element constraint of a range constraint; xDSL checks the rest."""
    if isinstance(constraint, RangeLengthConstraint):
        return _constraint_of_each(constraint.constraint)
    return constraint.constr if isinstance(constraint, RangeOf) else AnyAttr()


def _check_type(
    op: Operation,
    place: str,
    constraint: AttrConstraint,
    type_: Attribute,
    context: VerificationContext,
    is_one_of_several: bool,
) -> None:
    try:
        constraint.verify(type_, context)
    except VerifyException as problem:
        if (description := describe_constraint(constraint)) is None:
            raise op_error(op, f"{place} is of a wrong type: {problem}") from problem
        group = "variadic of " if is_one_of_several else ""
        raise op_error(op, f"{place} must be {group}{description}, but got '{type_}'") from problem


def check_beyond_key(op: Operation, definition: OpDef) -> None:
    """Check the part of an operation's definition that its key does not determine.

    These are the dialect-prefixed attributes and the contents of the regions.

    Raises:
        DiagnosticError: If an attribute or a region violates the definition.
    """
    if any("." in name for name in definition.attributes):
        _check_attributes(op, definition)
    if op.has_trait(SingleBlockImplicitTerminator):
        _check_single_blocks(op)
    sizes = _group_sizes(definition.regions, len(op.regions))
    defined = (each for each, size in zip(definition.regions, sizes, strict=True) for _ in range(size))
    for number, ((name, region_definition), region) in enumerate(zip(defined, op.regions, strict=False)):
        if isinstance(region_definition, SINGLE_BLOCK) and len(region.blocks) != 1:
            raise op_error(op, f"region #{number} ('{name}') failed to verify constraint: region with 1 blocks")
    if any(region_definition.entry_args != _ANY_ARGUMENTS for _, region_definition in definition.regions):
        with _xdsl_diagnostics(op):
            irdl_op_verify_regions(op, definition, VerificationContext())


def _check_single_blocks(op: Operation) -> None:
    for number, region in enumerate(op.regions):
        if len(region.blocks) > 1:
            raise op_error(op, f"expects region #{number} to have 0 or 1 blocks")
        if region.blocks and region.block.is_empty:
            raise op_error(op, "expects a non-empty block")


def _check_values_together(op: Operation, definition: OpDef) -> None:
    """Check constraints that relate several values, with xDSL's messages."""
    with _xdsl_diagnostics(op):
        context = VerificationContext()
        irdl_op_verify_arg_list(op, definition, VarIRConstruct.OPERAND, context)
        irdl_op_verify_arg_list(op, definition, VarIRConstruct.RESULT, context)


@contextmanager
def _xdsl_diagnostics(op: Operation) -> Generator[None]:
    try:
        yield
    except VerifyException as problem:
        raise op_error(op, str(problem)) from problem
