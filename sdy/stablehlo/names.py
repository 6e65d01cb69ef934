"""What MLIR calls the results and block arguments of StableHLO operations when it prints them."""

from collections.abc import Mapping

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation

from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.text.printing.names import AsmNames


class ConstantNames(AsmNames):
    """`%c` for integers and booleans, `%cst` for all else."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """The name by the element type."""
        return {0: "c" if isinstance(tensor_type(op.results[0]).element_type, IntegerType) else "cst"}


class DefinedResultNames(AsmNames):
    """Each result as the operation's definition calls it, `%output_state, %output`."""

    def result_names(self, op: Operation) -> Mapping[int, str]:
        """The names in the definition; none of its results is variadic."""
        assert isinstance(op, IRDLOperation)
        return {number: name for number, (name, _) in enumerate(op.get_irdl_definition().results)}


class LoopNames(AsmNames):
    """`%iterArg`, `%iterArg_0`, ... for what a loop carries."""

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """One name for all; the printer makes them differ."""
        return dict.fromkeys(range(len(region.block.args)), "iterArg")


class ScanNames(AsmNames):
    """`%input` for what a scan reads, `%carry` for what it carries."""

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """The inputs come first, as they do among the operands."""
        scan = region.parent
        assert scan is not None
        segments = scan.properties["operandSegmentSizes"]
        assert isinstance(segments, DenseArrayBase)
        inputs = int(segments.get_values()[0])
        return {number: "input" if number < inputs else "carry" for number in range(len(region.block.args))}
