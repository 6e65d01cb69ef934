"""`sdy-constant-or-scalar-splitter`: copy each constant for each of its uses."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.ops import ConstantOp, NamedComputationOp, ShardingGroupOp
from sdy.ir.editing import AnalysisPreservingPass, erase, insert, turn_into
from sdy.ir.fast_access import is_terminator, operands_of
from sdy.ir.shapes import is_scalar
from sdy.ir.walking import innermost_first, operations, operations_of
from sdy.passes.common.call_graph import callee, callees_first, copy_call_tree, original_name, set_callee
from sdy.passes.common.properties import is_elementwise, is_pure
from sdy.passes.common.symbols import Symbols
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp as StablehloConstantOp
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.shape import BitcastConvertOp, ReshapeOp
from sdy.stablehlo.slicing import SliceOp

_CONSTANTS = {ConstantOp, IotaOp}
_MOVES_ELEMENTS = {BroadcastInDimOp, ReshapeOp, SliceOp}


class ConstantOrScalarSplitterPass(AnalysisPreservingPass):
    """Copy constants, and broadcasts of scalars, so that each has one user and is sharded independently.

    Before::

        %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>
        %0 = stablehlo.add %arg0, %c : tensor<8x8xf32>
        %1 = stablehlo.multiply %0, %c : tensor<8x8xf32>

    After::

        %c0 = sdy.constant dense<1.0> : tensor<8x8xf32>
        %c1 = sdy.constant dense<1.0> : tensor<8x8xf32>
        %0 = stablehlo.add %arg0, %c0 : tensor<8x8xf32>
        %1 = stablehlo.multiply %0, %c1 : tensor<8x8xf32>

    Constant expressions count as constants: elementwise operations, broadcasts, reshapes and slices of constants, and
    calls and named computations that contain only these. The entire expression is copied, called functions included.
    Scalars stay shared, since they cannot be sharded. `stablehlo.constant` becomes `sdy.constant`, which
    canonicalization does not merge again.
    """

    name = "sdy-constant-or-scalar-splitter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for constant in operations_of(op, StablehloConstantOp):
            turn_into(constant, ConstantOp)
        splitter = _Splitter(Symbols(op))
        for function in callees_first(op):
            for computation in innermost_first(operations_of(function, NamedComputationOp)):
                splitter.split(computation, function)
            splitter.split(function, function)


@dataclass
class _Splitter:
    symbols: Symbols
    varying_computations: set[str] = field(default_factory=set[str])
    """Names of named computations whose results are not constant even if their operands are."""
    varying_functions: set[str] = field(default_factory=set[str])
    """Original names of functions whose results are not constant even if their arguments are."""
    keeping_classes: dict[type[Operation], bool] = field(default_factory=dict[type[Operation], bool])
    """Memoized `keeps_constants` of the classes for which it depends only on the class."""
    last_copies: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    """The latest copy of each operation that is copied without its operands; at first the operation itself, which its
    first user keeps."""

    def split(self, root: FuncOp | NamedComputationOp, function: FuncOp) -> None:
        """Copy the constants in the body of `root`, so that each has one user.

        Args:
            root: The function, or a named computation in it.
            function: The function.
        """
        constants: list[Operation] = []
        expansions: list[Operation] = []
        constant_values: set[int] = set()
        """The `id`s of the results of `constants`, for a fast check: most operations use none of them."""
        copied_values: set[int] = set()
        varies = False
        for operation in _outside_named_computations(root):
            op_class = operation.__class__
            if op_class is ShardingGroupOp:
                continue
            operands = operands_of(operation)
            keeps_constants = self.keeping_classes.get(op_class)
            if keeps_constants is None:
                keeps_constants = self.keeps_constants(operation)
            if op_class in _CONSTANTS or (keeps_constants and constant_values.issuperset(map(id, operands))):
                constants.append(operation)
                constant_values.update(map(id, operation.results))
                copied_values.update(id(result) for result in operation.results if not is_scalar(result))
                continue
            if not (keeps_constants or varies or is_terminator(operation)):
                varies = True
                self.mark_varying(root, function)
            if op_class is BroadcastInDimOp and is_scalar(operands[0]):
                expansions.append(operation)
                copied_values.update(id(result) for result in operation.results if not is_scalar(result))
            elif not copied_values.isdisjoint(map(id, operands)):
                for index, operand in enumerate(operands):
                    if isinstance(operand, OpResult) and id(operand) in copied_values:
                        copy = self.copy_of(operand)
                        if copy is not operand:
                            operation.operands[index] = copy
        _erase_unused([*expansions, *reversed(constants)])
        self.keep_for_scalars(constants)

    def keeps_constants(self, operation: Operation) -> bool:
        """Return whether the results of `operation` are constants if its operands are."""
        if isinstance(operation, CallOp):
            return original_name(callee(operation, self.symbols)) not in self.varying_functions
        if isinstance(operation, NamedComputationOp):
            return operation.computation_name.data not in self.varying_computations
        moves_elements = operation.__class__ in _MOVES_ELEMENTS or is_elementwise(operation)
        keeps_constants = moves_elements and is_pure(operation)
        if not (operation.regions or isinstance(operation, BitcastConvertOp | UnregisteredOp)):
            self.keeping_classes[operation.__class__] = keeps_constants
        return keeps_constants

    def mark_varying(self, root: FuncOp | NamedComputationOp, function: FuncOp) -> None:
        if isinstance(root, NamedComputationOp):
            self.varying_computations.add(root.computation_name.data)
        self.varying_functions.add(original_name(function))

    def copy_of(self, value: OpResult) -> SSAValue:
        """Return a copy of `value` for one more user."""
        if value.op.__class__ in _CONSTANTS and value.has_one_use():
            return value
        copies: dict[SSAValue, SSAValue] = {}
        self.copy_into(copies, value)
        return copies[value]

    def copy_into(self, copies: dict[SSAValue, SSAValue], value: OpResult) -> None:
        if is_scalar(value) or value in copies:
            return
        original = value.op
        for operand in original.operands:
            if isinstance(operand, OpResult):
                self.copy_into(copies, operand)
        groups = [use.operation for use in value.uses if use.operation.__class__ is ShardingGroupOp]
        is_one_copy = len(original.results) == 1 and not groups and copies.keys().isdisjoint(original.operands)
        if is_one_copy and original.__class__ is not CallOp and original not in self.last_copies:
            copies[value] = value
            self.last_copies[original] = original
            return
        for copied in (original, *groups):
            copy = copied.clone(copies)
            if isinstance(copy, CallOp):
                set_callee(copy, copy_call_tree(callee(copy, self.symbols), self.symbols))
            last = self.last_copies.get(original)
            insert(copy, InsertPoint.after(last) if last else InsertPoint.before(original))
            if last:
                self.last_copies[original] = copy

    def keep_for_scalars(self, constants: Sequence[Operation]) -> None:
        """Copy each constant that a user keeps and that scalar constants also read: these scalars are not copied."""
        expressions = set(constants)
        for original in constants:
            last = self.last_copies.get(original)
            if last is None or original.results[0].has_one_use():
                continue
            for_scalars = [use for use in original.results[0].uses if use.operation in expressions]
            if for_scalars:
                copy = original.clone()
                insert(copy, InsertPoint.after(last))
                for use in for_scalars:
                    use.operation.operands[use.index] = copy.results[0]


def _outside_named_computations(root: Operation) -> Sequence[Operation]:
    """Return the operations in `root` in pre-order, without those nested in named computations."""
    nested = operations(root)[1:]
    inside: set[Operation] = set()
    for op in nested:
        if op.__class__ is NamedComputationOp and op not in inside:
            inside.update(operations(op)[1:])
    return [op for op in nested if op not in inside] if inside else nested


def _erase_unused(constants: Sequence[Operation]) -> None:
    """Erase the constants that only sharding groups use, with these groups."""
    for constant in constants:
        users = [use.operation for result in constant.results for use in result.uses]
        if all(user.__class__ is ShardingGroupOp for user in users):
            for unused in (*users, constant):
                erase(unused)
