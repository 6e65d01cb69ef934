"""`sdy-per-instruction-partitioning`: partitioning of selected operations into manual computations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass, PassPipeline
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.diagnostics import error, warn
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.ops import (
    DataFlowEdgeOp,
    ManualComputationOp,
    PropagationBarrierOp,
    ReturnOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import move_body
from sdy.ir.fast_access import is_terminator
from sdy.ir.shapes import rank, shape_of
from sdy.ir.walking import operations, operations_at_top
from sdy.mesh import Mesh
from sdy.passes.exporting.drop_sharding_and_mesh import DropShardingAndMeshPass
from sdy.passes.exporting.insert_explicit_reshards import InsertExplicitReshardsPass
from sdy.passes.exporting.reshard_to_collectives import ReshardToCollectivesPass
from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
from sdy.passes.partitioning.pad_for_divisibility import PadForDivisibilityPass
from sdy.passes.partitioning.resolve_permutation_factors import ResolvePermutationFactorsPass
from sdy.passes.spmd.local_module import Channels, first_free_channel
from sdy.passes.spmd.outline import outline, outlining_error
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.operation_attributes import ChannelHandleAttr
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import Emitter
from sdy.stablehlo.padding import PadOp

_NO_INSTRUCTIONS = (
    CallOp,
    CollectiveOp,
    DataFlowEdgeOp,
    ManualComputationOp,
    PropagationBarrierOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)


@dataclass(frozen=True)
class PerInstructionPartitioningPass(ModulePass):
    """Partition selected operations, each into a manual computation of its own.

    Another partitioner then partitions the other operations, so that a bisection finds the one that it gets wrong.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>

    After::

        %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
            manual_axes={"x"} (%arg0: tensor<4xf32>) {
          %2 = stablehlo.negate %arg0 : tensor<4xf32>
          sdy.return %2 : tensor<4xf32>
        } : (tensor<8xf32>) -> tensor<8xf32>

    Neighbors exchange the elements that the operation moves between devices, unless `enable_halo_exchange` is false. An
    uneven operand is padded before the computation, and an uneven result is sliced after it.

    `filter` selects among the operations with a sharded operand or result, which are numbered in program order:
    `dot, pad` selects those whose names contain one of the words, and `selectLow=0, selectHigh=10` a range of numbers.
    The default is all. Operations in regions of others, calls and collectives are not numbered and are unchanged. An
    operation that cannot be partitioned on its own is unchanged too, with a warning.
    """

    name = "sdy-per-instruction-partitioning"
    filter: str = ""
    enable_halo_exchange: bool = True
    replica_count: int = 1
    partition_count: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        instruction_filter = _InstructionFilter.parse(self.filter)
        for number, instruction in enumerate(list(_instructions(op))):
            if not instruction_filter.includes(instruction.name, number):
                continue
            if (reason := outlining_error(instruction)) is not None:
                warn(instruction, f"'{instruction.name}' op cannot be partitioned on its own: {reason}")
            else:
                self._partition(ctx, op, instruction)

    def _partition(self, ctx: Context, module: ModuleOp, op: Operation) -> None:
        shardings = [get_sharding(value) for value in (*op.operands, *op.results)]
        mesh = next(
            sharding.mesh for sharding in shardings if sharding is not None and not sharding.is_fully_replicated
        )
        inputs = [_sharding(value, mesh) for value in op.operands]
        outputs = [replace(_sharding(value, mesh), unreduced=()) for value in op.results]
        outlined, function = outline(module, op, inputs, outputs)
        self._pad_shards().apply(ctx, outlined)
        padded = function.function_type
        self._make_local().apply(ctx, outlined)
        _renumber_channels(outlined, first_free_channel(operations(module)))

        emit = Emitter(InsertPoint.before(op), op)
        operands = [_padded(emit, *each) for each in zip(op.operands, padded.inputs, inputs, strict=True)]
        axes = dict.fromkeys(axis.name for sharding in (*inputs, *outputs) for axis in sharding.axes())
        body = move_body(function.body, ReturnOp)
        computation = ManualComputationOp(operands, body, padded.outputs.data, inputs, outputs, tuple(axes))
        computation.location = op.location
        Rewriter.insert_op(computation, InsertPoint.before(op))
        results = zip(op.results, computation.outputs, outputs, strict=True)
        Rewriter.replace_op(op, [], [_cut(emit, result, value, sharding) for result, value, sharding in results])

    def _pad_shards(self) -> PassPipeline:
        return PassPipeline(
            (
                InsertExplicitReshardsPass(enable_full_version=True),
                ResolvePermutationFactorsPass(self.enable_halo_exchange, self.replica_count, self.partition_count),
                ReshardToCollectivesPass(),
                PadForDivisibilityPass(pad_function_io=True, preserve_semantics=True),
            )
        )

    def _make_local(self) -> PassPipeline:
        to_local = ConvertGlobalToLocalPass(
            replica_count=self.replica_count,
            partition_count=self.partition_count,
            compute_whole=True,
            preserve_semantics=True,
        )
        return PassPipeline((to_local, DropShardingAndMeshPass()))


def _instructions(module: ModuleOp) -> Iterator[Operation]:
    """Yield the top-level operations of functions that have a sharded operand or result."""
    for function in operations_at_top(module):
        if isinstance(function, FuncOp):
            for block in function.body.blocks:
                for op in block.ops:
                    is_split = any(each is not None and not each.is_fully_replicated for each in _shardings(op))
                    if is_split and not is_terminator(op) and not isinstance(op, _NO_INSTRUCTIONS):
                        yield op


def _shardings(op: Operation) -> list[TensorSharding | None]:
    return [get_sharding(value) for value in (*op.operands, *op.results)]


def _sharding(value: SSAValue, mesh: str | Mesh) -> TensorSharding:
    """Return the sharding of a value, on `mesh` if it is replicated."""
    sharding = get_sharding(value)
    if sharding is None or sharding.is_fully_replicated:
        return TensorSharding.replicated_closed(mesh, rank(value.type))
    return sharding


def _renumber_channels(module: ModuleOp, first: int) -> None:
    """Renumber the channels of `module`, from `first` on."""
    channels = Channels(first)
    for op in operations(module):
        if isinstance(op.properties.get("channel_handle"), ChannelHandleAttr):
            op.properties["channel_handle"] = channels.next()


def _padded(emit: Emitter, value: SSAValue, type_: Attribute, sharding: TensorSharding) -> SSAValue:
    """Pad the end of `value` with zeros to the shape of `type_`."""
    if value.type == type_:
        return value
    assert isinstance(type_, TensorType)
    zero = emit.filled(TensorType(tensor_type(value).element_type, ()), 0)
    high = [size - before for size, before in zip(type_.get_shape(), shape_of(value), strict=True)]
    padded = emit.insert(PadOp(value, zero, [0] * len(high), high))
    set_sharding(padded, sharding)
    return padded


def _cut(emit: Emitter, original: SSAValue, value: SSAValue, sharding: TensorSharding) -> SSAValue:
    """Slice the padded `value` to the shape of `original`."""
    if value.type == original.type:
        return value
    cut = emit.slice(value, [0] * len(shape_of(value)), shape_of(original))
    set_sharding(cut, sharding)
    return cut


@dataclass(frozen=True)
class _InstructionFilter:
    """Filter of operations by name and number, written as `dot, pad`, `selectLow=3, selectHigh=10`, or both.

    Selects the operations numbered `low` to `high` whose names contain one of `words`, or any name if empty.
    """

    words: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None

    @classmethod
    def parse(cls, text: str) -> "_InstructionFilter":
        """Parse a comma-separated list of names and bounds, in any order.

        Raises:
            DiagnosticError: A bound is not a number, or an option is unknown.
        """
        words: list[str] = []
        bounds: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, equals, number = part.partition("=")
            if not equals:
                words.append(part)
            elif name not in ("selectLow", "selectHigh") or not number.strip().isdecimal():
                raise error(None, f"invalid operation filter '{part}': expected selectLow=N, selectHigh=N or a name")
            else:
                bounds[name] = int(number)
        return cls(tuple(words), bounds.get("selectLow", 0), bounds.get("selectHigh"))

    def includes(self, name: str, number: int) -> bool:
        """Return whether the filter selects the operation of this name and number."""
        in_range = self.low <= number and (self.high is None or number <= self.high)
        return in_range and (not self.words or any(word in name for word in self.words))
