"""Operations that run regions once, many times or not at all, and what ends and orders them."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue, Use
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from sdy.dialect.interfaces import ShardableDataFlow
from sdy.stablehlo.definition import define
from sdy.stablehlo.names import LoopNames
from sdy.stablehlo.shape_checks import compatible_types
from sdy.stablehlo.syntax import SpacedOperands


@define
class ReturnOp(IRDLOperation):
    """Ends a region and gives its values to the operation around it."""

    name = "stablehlo.return"
    results_ = var_operand_def()
    traits = traits_def(IsTerminator(), ReturnLike(), Pure())
    assembly_format = "custom<SpacedOperands>($results_) attr-dict (`:` type($results_)^)?"
    custom_directives = (SpacedOperands,)

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


def terminator_use(region: Region, index: int) -> Use:
    """The use by which a region's terminator gives its value of this index."""
    terminator = region.block.last_op
    assert terminator is not None
    return Use(terminator, index)


def result_index(owner: SSAValue) -> int:
    """The number of a result that owns a data-flow edge."""
    assert isinstance(owner, OpResult)
    return owner.index


class LoopDataFlow(ShardableDataFlow):
    """An edge for each carried value: what it begins as and what the body returns flow into arguments and result."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """The initial value and the one that the body returns."""
        index = result_index(owner)
        assert isinstance(op, WhileOp)
        return (Use(op, index), terminator_use(op.body, index))

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        """The result of the same number."""
        assert isinstance(target, OpResult | BlockArgument)
        return op.results[target.index]

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        """The arguments of condition and body of the same number."""
        index = result_index(owner)
        return tuple(region.block.args[index] for region in op.regions)


class BranchDataFlow(ShardableDataFlow):
    """An edge for each result: what each branch returns flows into it."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """The value that each branch returns."""
        return tuple(terminator_use(region, result_index(owner)) for region in op.regions)


class OperandDataFlow(ShardableDataFlow):
    """An edge from each operand to the result of the same number."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """The operand."""
        return (Use(op, result_index(owner)),)


@define
class WhileOp(IRDLOperation):
    """Runs the body on the carried values as long as the condition holds of them."""

    name = "stablehlo.while"
    operand = var_operand_def()
    res = var_result_def()
    cond = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(LoopDataFlow(), LoopNames(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `(%iterArg = %x, ...) : types cond {...} do {...}`."""

        def parse_carried() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return argument, parser.parse_unresolved_operand()

        start = parser.pos
        carried = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_carried)
        types: list[Attribute] = []
        if carried:
            parser.parse_punctuation(":")
            types += parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        operands = parser.resolve_operands([operand for _, operand in carried], types, start)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        arguments = [argument.resolve(type_) for (argument, _), type_ in zip(carried, types, strict=True)]
        parser.parse_keyword("cond")
        cond = parser.parse_region(arguments)
        parser.parse_keyword("do")
        body = parser.parse_region(arguments)
        return cls.create(
            operands=operands,
            result_types=types,
            attributes={} if attributes is None else dict(attributes.data),
            regions=(cond, body),
        )

    def print(self, printer: Printer) -> None:
        """Write `(%iterArg = %x, ...) : types cond {...} do {...}`."""

        def print_carried(carried: tuple[SSAValue, SSAValue]) -> None:
            printer.print_operand(carried[0])
            printer.print_string(" = ")
            printer.print_operand(carried[1])

        with printer.in_parens():
            printer.print_list(zip(self.body.block.args, self.operand, strict=True), print_carried)
        if self.operand:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string("\ncond ")
        printer.print_region(self.cond, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)

    def verify_(self) -> None:
        """Refuse regions and results that do not carry the operands' types."""
        types = list(self.operand_types)
        for kind, found in (
            ("condition", self.cond.block.arg_types),
            ("body", self.body.block.arg_types),
            ("body return", returned_types(self.body)),
            ("result", self.result_types),
        ):
            verify_types(found, types, f"{kind} types differ from operand types")


@define
class CaseOp(IRDLOperation):
    """Runs the branch of the given number; the last one for a number that is out of range."""

    name = "stablehlo.case"
    index = operand_def(TensorType)
    res = var_result_def()
    branches = var_region_def("single_block")
    traits = traits_def(BranchDataFlow(), RecursiveMemoryEffect())

    def verify_(self) -> None:
        """Refuse no branches, and branches that do not return the results' types."""
        if not self.branches:
            raise VerifyException("expect at least one branch")
        verify_branches(self)


@define
class IfOp(IRDLOperation):
    """Runs one of two branches."""

    name = "stablehlo.if"
    pred = operand_def(TensorType)
    res = var_result_def()
    true_branch = region_def("single_block")
    false_branch = region_def("single_block")
    traits = traits_def(BranchDataFlow(), RecursiveMemoryEffect())

    def verify_(self) -> None:
        """Refuse branches that do not return the results' types."""
        verify_branches(self)


def returned_types(region: Region) -> Sequence[Attribute]:
    """The types of the values that a region's terminator gives."""
    terminator = region.block.last_op
    return () if terminator is None else terminator.operand_types


def verify_types(found: Sequence[Attribute], expected: Sequence[Attribute], message: str) -> None:
    """Refuse types that differ in number or kind."""
    if len(found) != len(expected) or not all(map(compatible_types, found, expected)):
        shown = " vs ".join(f"({', '.join(map(str, types))})" for types in (found, expected))
        raise VerifyException(f"{message}: {shown}")


def verify_branches(op: Operation) -> None:
    """Refuse branches that take arguments or do not return the results' types."""
    for number, branch in enumerate(op.regions):
        if branch.block.args:
            raise VerifyException(f"branch {number} must have 0 arguments, but found {len(branch.block.args)}")
        verify_types(
            returned_types(branch), op.result_types, f"branch {number} returned types differ from result types"
        )


@irdl_custom_directive
class PairwiseOperands(CustomDirective):
    """`%0, %1 : tensor<4xf32>, tensor<i32>`, with the types of the operands and of the results; `()` for none."""

    operands: VariadicOperandVariable
    operand_types: TypeDirective
    result_types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the operands, and set the types of operands and results."""
        operands: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("(") is not None:
            parser.parse_punctuation(")")
        else:
            operands += parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
            parser.parse_punctuation(":")
            types += parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        self.operands.set(state, operands)
        self.operand_types.set(state, types)
        self.result_types.set(state, types)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the operands and the types once."""
        if not op.operands:
            printer.print_string("()")
            return
        printer.print_string(" ")
        printer.print_list(op.operands, printer.print_operand)
        printer.print_string(" : ")
        printer.print_list(op.operand_types, printer.print_attribute)


@define
class OptimizationBarrierOp(IRDLOperation):
    """The operands, of which none is used before all are computed."""

    name = "stablehlo.optimization_barrier"
    operand = var_operand_def()
    result = var_result_def()
    traits = traits_def(OperandDataFlow(), Pure())
    assembly_format = "attr-dict custom<PairwiseOperands>($operand, type($operand), type($result))"
    custom_directives = (PairwiseOperands,)

    def verify_(self) -> None:
        """Refuse results whose types are not the operands'."""
        if len(self.operands) != len(self.results) or not all(
            map(compatible_types, self.operand_types, self.result_types)
        ):
            raise VerifyException("requires the same type for operand and result at each index")
