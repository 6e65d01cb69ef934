"""`sdy-constant-or-scalar-splitter`: a copy of each constant for each of its uses."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.ops import ConstantOp, NamedComputationOp, ShardingGroupOp
from sdy.dialect.traits import is_terminator
from sdy.dialect.walk import operations_inside_out, operations_of
from sdy.passes.common.call_graph import callee, callees_first, copy_call_tree, original_name, set_callee
from sdy.passes.common.op_properties import is_elementwise, is_pure
from sdy.passes.common.symbols import Symbols
from sdy.passes.common.tensors import is_scalar
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp as StablehloConstantOp
from sdy.stablehlo.constants import IotaOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import SliceOp

_CONSTANTS = {ConstantOp, IotaOp}
_MOVES_ELEMENTS = {BroadcastInDimOp, ReshapeOp, SliceOp}


class ConstantOrScalarSplitterPass(ModulePass):
    """Copy constants, and broadcasts of scalars, until each has one user, so that each use is sharded on its own.

    Before::

        %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>
        %0 = stablehlo.add %arg0, %c : tensor<8x8xf32>
        %1 = stablehlo.multiply %0, %c : tensor<8x8xf32>

    After::

        %c0 = sdy.constant dense<1.0> : tensor<8x8xf32>
        %c1 = sdy.constant dense<1.0> : tensor<8x8xf32>
        %0 = stablehlo.add %arg0, %c0 : tensor<8x8xf32>
        %1 = stablehlo.multiply %0, %c1 : tensor<8x8xf32>

    A constant is also what is computed from constants alone: by an elementwise operation, a broadcast, a reshape, a
    slice, or a call or named computation that does only such things. The whole computation is then copied, called
    functions included. Scalars are shared as before, since they cannot be split over devices. `stablehlo.constant`
    becomes `sdy.constant`, which folding does not merge again.
    """

    name = "sdy-constant-or-scalar-splitter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for constant in operations_of(op, StablehloConstantOp):
            attributes = {**constant.properties, **constant.attributes}
            value = attributes.pop("value")
            Rewriter.replace_op(
                constant,
                ConstantOp.create(
                    result_types=constant.result_types,
                    properties={"value": value},
                    attributes=attributes,
                    location=constant.location,
                ),
            )
        splitter = _Splitter(Symbols(op))
        for function in callees_first(op):
            for computation in operations_inside_out(function):
                if isinstance(computation, NamedComputationOp):
                    splitter.split(computation.body, function)
            splitter.split(function.body, function)


@dataclass
class _Splitter:
    symbols: Symbols
    varying_computations: set[str] = field(default_factory=set[str])
    """Names of named computations that do more than compute constants from constants."""
    varying_functions: set[str] = field(default_factory=set[str])
    """Original names of functions that do more than compute constants from constants."""

    def split(self, region: Region, function: FuncOp) -> None:
        """Copy the constants of `region`, which is in `function`, and remove the originals."""
        constants: dict[Operation, None] = {}
        expansions: dict[Operation, None] = {}
        for operation in _outside_named_computations(region):
            if operation.__class__ is ShardingGroupOp:
                continue
            keeps_constants = self.keeps_constants(operation)
            if operation.__class__ in _CONSTANTS or (keeps_constants and _all_in(operation.operands, constants)):
                constants[operation] = None
                continue
            if not keeps_constants and not is_terminator(operation):
                self.mark_varying(region, function)
            if _is_expansion(operation):
                expansions[operation] = None
                continue
            for index, operand in enumerate(operation.operands):
                if isinstance(operand, OpResult) and (operand.op in constants or operand.op in expansions):
                    operation.operands[index] = self.copy_of(operand)
        _erase_unused([*expansions, *reversed(constants)])

    def keeps_constants(self, operation: Operation) -> bool:
        """Whether the results of `operation` are constants if its operands are."""
        if is_elementwise(operation) or operation.__class__ in _MOVES_ELEMENTS:
            return is_pure(operation)
        if isinstance(operation, CallOp):
            return original_name(callee(operation, self.symbols)) not in self.varying_functions
        return (
            isinstance(operation, NamedComputationOp)
            and operation.computation_name.data not in self.varying_computations
        )

    def mark_varying(self, region: Region, function: FuncOp) -> None:
        computation = region.parent
        if isinstance(computation, NamedComputationOp):
            self.varying_computations.add(computation.computation_name.data)
        self.varying_functions.add(original_name(function))

    def copy_of(self, value: OpResult) -> SSAValue:
        """`value` computed once more, each copied operation standing before its original."""
        copies: dict[SSAValue, SSAValue] = {}
        self.copy_into(copies, value)
        return copies.get(value, value)

    def copy_into(self, copies: dict[SSAValue, SSAValue], value: OpResult) -> None:
        if is_scalar(value) or value in copies:
            return
        for operand in value.op.operands:
            if isinstance(operand, OpResult):
                self.copy_into(copies, operand)
        groups = [user for user in _users(value) if isinstance(user, ShardingGroupOp)]
        for original in (value.op, *groups):
            copy = original.clone(copies)
            if isinstance(copy, CallOp):
                set_callee(copy, copy_call_tree(callee(copy, self.symbols), self.symbols))
            Rewriter.insert_op(copy, InsertPoint.before(value.op))


def _outside_named_computations(region: Region) -> Iterable[Operation]:
    """The operations in `region`, outer ones first, without what is in a named computation.

    Operations may be inserted before the one that was yielded last.
    """
    for block in region.blocks:
        for operation in block.ops:
            yield operation
            if not isinstance(operation, NamedComputationOp):
                for inner in operation.regions:
                    yield from _outside_named_computations(inner)


def _all_in(values: Iterable[SSAValue], operations: Container[Operation]) -> bool:
    """Whether all `values` are results of `operations`."""
    return all(isinstance(value, OpResult) and value.op in operations for value in values)


def _is_expansion(operation: Operation) -> bool:
    return operation.__class__ is BroadcastInDimOp and is_scalar(operation.operands[0])


def _users(value: SSAValue) -> list[Operation]:
    return [use.operation for use in value.uses]


def _erase_unused(operations: Sequence[Operation]) -> None:
    """Erase those that nothing uses but sharding groups, and those groups."""
    for operation in operations:
        users = [user for result in operation.results for user in _users(result)]
        if all(isinstance(user, ShardingGroupOp) for user in users):
            for erased in (*users, operation):
                Rewriter.erase_op(erased)
