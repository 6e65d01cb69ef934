"""Suggested names of results and block arguments of StableHLO operations, as MLIR prints them."""

from collections.abc import Mapping

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation

from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.text.printing.names import AsmNames


class ConstantNames(AsmNames):
    """`%c` for integers and booleans, `%cst` for other constants."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return the name for the element type."""
        return {0: "c" if isinstance(tensor_type(op.results[0]).element_type, IntegerType) else "cst"}


class DefinedResultNames(AsmNames):
    """The names of results in the operation's definition, `%output_state, %output`."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """Return the names in the definition, which has no variadic results."""
        assert isinstance(op, IRDLOperation)
        return {number: name for number, (name, _) in enumerate(op.get_irdl_definition().results)}


class LoopNames(AsmNames):
    """`%iterArg`, `%iterArg_0`, ... for the carried values of a loop."""

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """Return the same name for all arguments; the printer adds suffixes."""
        return dict.fromkeys(range(len(region.block.args)), "iterArg")


class ScanNames(AsmNames):
    """`%input` for the inputs of a scan, `%carry` for its carried values."""

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """Return the names of the inputs, which come first, and of the carried values."""
        scan = region.parent
        assert scan is not None
        segments = scan.properties["operandSegmentSizes"]
        assert isinstance(segments, DenseArrayBase)
        inputs = int(segments.get_values()[0])
        return {number: "input" if number < inputs else "carry" for number in range(len(region.block.args))}
