"""Loops, conditionals, optimization barriers and the terminator of regions."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import TensorType, i1
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
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import error, quoted
from sdy.dialect.interfaces import ShardableDataFlow
from sdy.ir.open_syntax import share_names
from sdy.parse_errors import explained
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import compatible_type_lists, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.directives import SpacedOperands
from sdy.stablehlo.syntax.names import LoopNames
from sdy.stablehlo.types.sizes import least_specific
from sdy.stablehlo.types.tensor_types import (
    I32_TENSOR,
    PREDICATE,
    TENSOR_BY_AXIS_OR_TOKEN,
    TENSOR_OR_TOKEN,
    TENSOR_TOKEN_OR_BUFFER,
)


@define
class ReturnOp(IRDLOperation):
    """Terminator of a region, which returns its values to the parent operation."""

    name = "stablehlo.return"
    results_ = var_operand_def(TENSOR_TOKEN_OR_BUFFER)
    traits = traits_def(IsTerminator(), ReturnLike(), Pure())
    assembly_format = "custom<SpacedOperands>($results_) attr-dict (`:` type($results_)^)?"
    custom_directives = (SpacedOperands,)

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


def terminator_use(region: Region, index: int) -> Use:
    """Return the terminator's use of the value that a region returns at this index."""
    terminator = region.block.last_op
    assert terminator is not None
    return Use(terminator, index)


def result_index(owner: SSAValue) -> int:
    """Return the number of the result that owns a data-flow edge."""
    assert isinstance(owner, OpResult)
    return owner.index


class LoopDataFlow(ShardableDataFlow):
    """One data-flow edge per carried value, from the initial and the returned value to the arguments and the result."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """Return the uses of the initial value and of the value that the body returns."""
        index = result_index(owner)
        assert isinstance(op, WhileOp)
        return (Use(op, index), terminator_use(op.body, index))

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        """Return the result of the same number."""
        assert isinstance(target, OpResult | BlockArgument)
        return op.results[target.index]

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        """Return the arguments of condition and body of the same number."""
        index = result_index(owner)
        return tuple(region.block.args[index] for region in op.regions)


class BranchDataFlow(ShardableDataFlow):
    """One data-flow edge per result, from the values that the branches return."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """Return the uses of the values that the branches return."""
        return tuple(terminator_use(region, result_index(owner)) for region in op.regions)


class OperandDataFlow(ShardableDataFlow):
    """One data-flow edge from each operand to the result of the same number."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        """Return the use of the operand."""
        return (Use(op, result_index(owner)),)


@define
class WhileOp(InferredResults):
    """Apply the body to the carried values while the condition is true."""

    name = "stablehlo.while"
    operand = var_operand_def(TENSOR_TOKEN_OR_BUFFER)
    res = var_result_def(TENSOR_TOKEN_OR_BUFFER)
    cond = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(LoopDataFlow(), LoopNames(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `(%iterArg = %x, ...) : types cond {...} do {...}`."""

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
        """Print `(%iterArg = %x, ...) : types cond {...} do {...}`."""

        def print_carried(carried: tuple[SSAValue, SSAValue]) -> None:
            printer.print_operand(carried[0])
            printer.print_string(" = ")
            printer.print_operand(carried[1])

        with printer.in_parens():
            printer.print_list(zip(self.body.block.args, self.operand, strict=True), print_carried)
        share_names(printer, self.cond.block.args, self.body.block.args)
        if self.operand:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string("\ncond ")
        printer.print_region(self.cond, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the types of the carried values."""
        return self.operand_types

    def verify_(self) -> None:
        """Verify that the regions take and return the carried values, and that the condition is a boolean."""
        carried = self.operand_types
        for place, region_types in (
            ("condition block arguments", self.cond.block.arg_types),
            ("body block arguments", self.body.block.arg_types),
            ("body block return types", returned_types(self.body)),
        ):
            if not compatible_type_lists(carried, region_types):
                types = f"{quoted(carried)} vs {quoted(region_types)}"
                raise error(self, f"expect operands to be compatible with {place} but got {types}")
        condition = returned_types(self.cond)
        if len(condition) != 1:
            raise error(self, f"expect condition body returns a single value but got {len(condition)}")
        if condition[0] != TensorType(i1, ()):
            kind = "a zero-ranked tensor of i1"
            raise error(self, f"expect condition block return {kind} but got {quoted(condition)}")
        super().verify_()


class Conditional(InferredResults):
    """Base of conditionals, which execute one of their regions."""

    def infer_types(self) -> Sequence[Attribute]:
        """Return the least specific types of the branches' results."""
        (selector,) = self.operands
        if rank := tensor_type(selector).get_num_dims():
            raise VerifyException(f"operand should be rank 0 tensor but got rank {rank}")
        if not self.regions:
            raise VerifyException("expect at least one branch")
        if not all(branch.blocks for branch in self.regions):
            raise VerifyException("expect non-empty region")
        returned = list(map(returned_types, self.regions))
        for number, (branch, types) in enumerate(zip(self.regions, returned, strict=True)):
            if arguments := len(branch.block.args):
                raise VerifyException(f"branch {number} must have 0 arguments, but found {arguments}")
            if not compatible_type_lists(returned[0], types):
                raise VerifyException(
                    f"branch 0 and branch {number} have mismatched return types: "
                    f"{quoted(returned[0])} vs {quoted(types)}"
                )
        return [least_specific(types) for types in zip(*returned, strict=True)]


@define
class CaseOp(Conditional):
    """Execute the branch with the number `index`, or the last one if it is out of range."""

    name = "stablehlo.case"
    index = operand_def(I32_TENSOR)
    res = var_result_def(TENSOR_BY_AXIS_OR_TOKEN)
    branches = var_region_def("single_block")
    traits = traits_def(BranchDataFlow(), RecursiveMemoryEffect())


@define
class IfOp(Conditional):
    """Execute one of two branches."""

    name = "stablehlo.if"
    pred = operand_def(PREDICATE)
    res = var_result_def(TENSOR_BY_AXIS_OR_TOKEN)
    true_branch = region_def("single_block")
    false_branch = region_def("single_block")
    traits = traits_def(BranchDataFlow(), RecursiveMemoryEffect())


def returned_types(region: Region) -> Sequence[Attribute]:
    """Return the types of the values that a region returns."""
    terminator = region.block.last_op
    return () if terminator is None else terminator.operand_types


def _parse_types(parser: AttrParser) -> list[Attribute]:
    return [*parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)]


@irdl_custom_directive
class PairwiseOperands(CustomDirective):
    """`%0, %1 : tensor<4xf32>, tensor<i32>`, where operands and results have the same types; `()` without operands."""

    operands: VariadicOperandVariable
    operand_types: TypeDirective
    result_types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the operands, and set the types of operands and results."""
        operands: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if (first := parser.parse_optional_unresolved_operand()) is None:
            parser.parse_punctuation("(")
            parser.parse_punctuation(")")
        else:
            operands.append(first)
            while parser.parse_optional_punctuation(",") is not None:
                operands.append(parser.parse_unresolved_operand())
            parser.parse_punctuation(":")
            types += explained(parser, _parse_types, "expected type list")
        self.operands.set(state, operands)
        self.operand_types.set(state, types)
        self.result_types.set(state, types)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the operands and their types."""
        if not op.operands:
            printer.print_string("()")
            return
        printer.print_string(" ")
        printer.print_list(op.operands, printer.print_operand)
        printer.print_string(" : ")
        printer.print_list(op.operand_types, printer.print_attribute)


@define
class OptimizationBarrierOp(IRDLOperation):
    """Barrier: no result is available before all operands are computed."""

    name = "stablehlo.optimization_barrier"
    operand = var_operand_def(TENSOR_OR_TOKEN)
    result = var_result_def(TENSOR_OR_TOKEN)
    traits = traits_def(OperandDataFlow(), Pure())
    assembly_format = "attr-dict custom<PairwiseOperands>($operand, type($operand), type($result))"
    custom_directives = (PairwiseOperands,)

    def verify_(self) -> None:
        """Verify that operands and results have the same types."""
        if len(self.operands) != len(self.results):
            raise VerifyException("requires the same number of operands and results")
        for index, (operand, result) in enumerate(zip(self.operand_types, self.result_types, strict=True)):
            if operand != result:
                raise VerifyException(f"requires the same type for operand and result at index {index}")
