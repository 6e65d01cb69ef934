"""The `check` and `interpreter` dialects of StableHLO's interpreter tests.

    %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@f, @f]]} : (tensor<2xi32>, ...) -> (...)
    check.expect_eq_const %0#0, dense<[1, 2]> : tensor<2xi32>
    check.expect_almost_eq %x, %y, tolerance = 0.1 : tensor<2xf32>
    check.expect_close %x, %y, max_ulp_difference = 3 : tensor<2xf32>, tensor<2xf32>

`run_parallel` runs a program on each device of a grid; each row is a replica. An `expect_` operation fails if its
operands differ: at all, by more than a tolerance, or by more than a number of units in the last place.
"""

from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FlatSymbolRefAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    f64,
)
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.syntax.definition import define

_UI32 = IntegerType(32, Signedness.UNSIGNED)
_UI64 = IntegerType(64, Signedness.UNSIGNED)
_TENSOR = BaseAttr(TensorType)

DEFAULT_TOLERANCE = 1e-4


class ExpectationOp(IRDLOperation):
    """An assertion that two tensors are equal, exactly or up to a tolerance."""

    lhs = operand_def(_TENSOR)
    tolerance = opt_prop_def(FloatAttr)

    def _print_tolerance(self, printer: Printer) -> None:
        if self.tolerance is not None:
            printer.print_string(", tolerance = ")
            printer.print_float(self.tolerance.value.data, f64)
        printer.print_op_attributes(self.attributes)


class PairExpectationOp(ExpectationOp):
    """An assertion whose tensors are both operands, of the same type."""

    rhs = operand_def(_TENSOR)

    def verify_(self) -> None:
        """Verify that the operands have the same type."""
        if self.lhs.type != self.rhs.type:
            raise VerifyException("requires all operands to have the same type")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `%x, %y, tolerance = 0.1 : tensor<2xf32>`."""
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        properties = _parse_tolerance(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = [parser.resolve_operand(operand, type_) for operand in (lhs, rhs)]
        return cls.create(operands=operands, properties=properties | _own(attributes), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the syntax of `parse`."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        self._print_tolerance(printer)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


class ConstantExpectationOp(ExpectationOp):
    """An assertion whose second tensor is a constant."""

    value = prop_def(DenseIntOrFPElementsAttr)

    def verify_(self) -> None:
        """Verify that the operand and the constant have the same type."""
        if self.lhs.type != self.value.get_type():
            raise VerifyException("failed to verify that all of {lhs, value} have same type")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `%x, dense<...> : tensor<2xf32>, tolerance = 0.1`."""
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        start = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr):
            parser.raise_error("expected a constant", start)
        properties: dict[str, Attribute] = {"value": value, **_parse_tolerance(parser)}
        attributes = parser.parse_optional_attr_dict()
        operands = [parser.resolve_operand(lhs, value.get_type())]
        return cls.create(operands=operands, properties=properties | _own(attributes), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the syntax of `parse`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.lhs)
        printer.print_string(", ")
        printer.print_attribute(self.value)
        self._print_tolerance(printer)


def _own(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Remove a `tolerance` from the attributes, and return it as a property."""
    return {"tolerance": attributes.pop("tolerance")} if "tolerance" in attributes else {}


def _parse_tolerance(parser: Parser) -> dict[str, Attribute]:
    if parser.parse_optional_punctuation(",") is None:
        return {}
    parser.parse_keyword("tolerance")
    parser.parse_punctuation("=")
    return {"tolerance": FloatAttr(float(parser.parse_number()), f64)}


@define
class ExpectEqOp(PairExpectationOp):
    """Assert that two tensors are equal."""

    name = "check.expect_eq"


@define
class ExpectEqConstOp(ConstantExpectationOp):
    """Assert that a tensor is equal to a constant."""

    name = "check.expect_eq_const"


@define
class ExpectAlmostEqOp(PairExpectationOp):
    """Assert that two tensors are equal up to a tolerance."""

    name = "check.expect_almost_eq"


@define
class ExpectAlmostEqConstOp(ConstantExpectationOp):
    """Assert that a tensor is equal to a constant up to a tolerance."""

    name = "check.expect_almost_eq_const"


@define
class ExpectCloseOp(IRDLOperation):
    """Assert that two tensors differ by a limited number of units in the last place."""

    name = "check.expect_close"
    actual = operand_def(_TENSOR)
    expected = operand_def(_TENSOR)
    max_ulp_difference = prop_def(IntegerAttr)
    min_ulp_difference = opt_prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `%x, %y, max_ulp_difference = 3, min_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>`."""
        actual = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        expected = parser.parse_unresolved_operand()
        properties: dict[str, Attribute] = {}
        while parser.parse_optional_punctuation(",") is not None:
            name = parser.parse_identifier()
            parser.parse_punctuation("=")
            properties[name] = IntegerAttr(parser.parse_integer(), _UI64)
        parser.parse_punctuation(":")
        attributes = parser.parse_optional_attr_dict()
        types_start = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        operands = parser.resolve_operands([actual, expected], types, types_start)
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the syntax of `parse`."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        for name, number in (("max", self.max_ulp_difference), ("min", self.min_ulp_difference)):
            if number is not None:
                printer.print_string(f", {name}_ulp_difference = {number.value.data}")
        printer.print_string(" :")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_list([operand.type for operand in self.operands], printer.print_attribute)


@define
class ExpectSerializedEqOp(IRDLOperation):
    """Assert that a tensor is equal to the value recorded by a probe."""

    name = "check.expect_serialized_eq"
    expected = operand_def(_TENSOR)
    probe_id = prop_def(StringAttr)
    iteration = opt_prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `%x, probe_id = "probe", iter = 0 : tensor<2xi32>`."""
        expected = parser.parse_unresolved_operand()
        properties: dict[str, Attribute] = {}
        while parser.parse_optional_punctuation(",") is not None:
            word = parser.parse_identifier()
            parser.parse_punctuation("=")
            if word == "probe_id":
                properties[word] = StringAttr(parser.parse_str_literal())
            else:
                properties["iteration"] = IntegerAttr(parser.parse_integer(), _UI32)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(expected, parser.parse_type())
        return cls.create(operands=[operand], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print the syntax of `parse`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.expected)
        printer.print_string(", probe_id = ")
        printer.print_attribute(self.probe_id)
        if self.iteration is not None:
            printer.print_string(f", iter = {self.iteration.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.expected.type)


@define
class RunParallelOp(IRDLOperation):
    """Run a program on each device of a grid; operands and results are those of all programs, concatenated."""

    name = "interpreter.run_parallel"
    inputs = var_operand_def()
    infeed = opt_prop_def(ArrayAttr[FlatSymbolRefAttr])
    programs = prop_def(ArrayAttr[ArrayAttr[FlatSymbolRefAttr]])
    outputs = var_result_def()


@define
class PrintOp(IRDLOperation):
    """Print a tensor."""

    name = "interpreter.print"
    operand = operand_def(_TENSOR)
    assembly_format = "$operand attr-dict `:` type($operand)"


@define
class ProbeOp(IRDLOperation):
    """Record the operand under a name, and return it."""

    name = "interpreter.probe"
    operand = operand_def(_TENSOR)
    probe_id = prop_def(StringAttr)
    result = result_def(_TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `%x, probe_id = "probe" : tensor<2xi32>`."""
        unresolved = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("probe_id")
        parser.parse_punctuation("=")
        probe_id = StringAttr(parser.parse_str_literal())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(unresolved, parser.parse_type())
        return cls.create(
            operands=[operand], properties={"probe_id": probe_id}, attributes=attributes, result_types=[operand.type]
        )

    def print(self, printer: Printer) -> None:
        """Print the syntax of `parse`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(", probe_id = ")
        printer.print_attribute(self.probe_id)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)


CHECK = Dialect(
    "check",
    [ExpectAlmostEqConstOp, ExpectAlmostEqOp, ExpectCloseOp, ExpectEqConstOp, ExpectEqOp, ExpectSerializedEqOp],
)
INTERPRETER = Dialect("interpreter", [PrintOp, ProbeOp, RunParallelOp])
