"""`sdy-resolve-single-device-sharding`: conditionals for operations on a single device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, i1
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.device_groups import shard_indices
from sdy.diagnostics import op_error
from sdy.dialect.attributes import SHARDING
from sdy.dialect.collectives import AllGatherOp, AllReduceOp, AllSliceOp, CollectiveOp
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.spmd.emit.op_conversion import device_id_op
from sdy.passes.spmd.emit.single_device import device_of, is_on_one_device
from sdy.sharding import TensorSharding
from sdy.stablehlo import CreateTokenOp, IfOp, ReturnOp, TokenType
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import DeviceIdOp
from sdy.stablehlo.emitter import Emitter


@dataclass(frozen=True)
class ResolveSingleDeviceShardingPass(ModulePass):
    """Compute each operation with a single-device sharding in a conditional, and send its results to all devices.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        sdy.mesh @one = <[], device_ids=[1]>
        %1 = sdy.reshard %0 <@one, []> : tensor<8xf32>
        %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8xf32>
        %3 = sdy.reshard %2 <@mesh, [{}]> : tensor<8xf32>

    After::

        %id = stablehlo.partition_id : tensor<ui32>
        %i = stablehlo.convert %id : (tensor<ui32>) -> tensor<i64>
        %one = stablehlo.constant dense<1> : tensor<i64>
        %is_one = stablehlo.compare EQ, %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
        %2 = "stablehlo.if"(%is_one) ({
          %4 = stablehlo.negate %0 : tensor<8xf32>
          stablehlo.return %4 : tensor<8xf32>
        }, {
          %5 = stablehlo.constant dense<0.000000e+00> : tensor<8xf32>
          stablehlo.return %5 : tensor<8xf32>
        }) : (tensor<i1>) -> tensor<8xf32>
        %3 = sdy.all_reduce {"x"} %2 out_sharding=<@mesh, [{}]> : tensor<8xf32>

    A sharded operand is gathered first. A result that only the same device uses is not sent. A module without a mesh of
    several devices is unchanged. Devices are partitions of one replica or, if `replica_count` is greater than 1,
    replicas of one partition.

    In a manual computation, one device in each group along the free axes computes the operation for its group: the
    device with the same coordinates along the free axes as the single device.
    """

    name = "sdy-resolve-single-device-sharding"
    replica_count: int = 1
    partition_count: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        meshes = named_meshes(op)
        everywhere = next((name for name, mesh in meshes.items() if mesh.axes), None)
        if everywhere is None:
            return
        device_id = device_id_op(op, self.replica_count, self.partition_count)
        manual_axes = ManualAxes(op)
        sent: dict[SSAValue, _Sent] = {}
        for alone in operations(op):
            # Operations nested in one that was moved into a conditional have no sharding anymore.
            if alone.dialect_name() != "sdy" and (device := device_of(alone)) is not None:
                users = [list(result.uses) for result in alone.results]
                free = manual_axes.free(alone, meshes[everywhere])
                runs = _runs_on_devices(device, free, meshes[everywhere])
                conditional = _run_on(device, alone, device_id, sent, runs)
                replicated = _send_to_all(conditional, everywhere, free)
                for uses, result, value in zip(users, conditional.results, replicated, strict=True):
                    _replace_uses(uses, value)
                    sent[value] = _Sent(device, result)
        for value in sent:
            if isinstance(value.owner, AllReduceOp) and not value.uses:
                Rewriter.erase_op(value.owner)


class _Sent(NamedTuple):
    """The device that computed a value, and the value before it was sent to all devices."""

    device: int
    value: SSAValue


def _runs_on_devices(device: int, free: Sequence[AxisRef], mesh: Mesh) -> list[bool]:
    """Return for each device of `mesh` whether it has the coordinates of `device` along the `free` axes."""
    places = shard_indices(free, mesh)
    return [device < mesh.size and place == places[device] for place in places]


def _run_on(
    device: int, op: Operation, device_id: type[DeviceIdOp], sent: Mapping[SSAValue, _Sent], runs: Sequence[bool]
) -> IfOp:
    """Move `op` into a conditional that computes it on the devices in `runs`, and yields zeros and tokens on others.

    Operands that `device` itself has `sent` are replaced by the values before they were sent.
    """
    emit = Emitter(InsertPoint.before(op), op, device_id)
    if sum(runs) == 1:
        is_device = emit.compare(ComparisonDirection.EQ, emit.device_id(), emit.integers([device], ()))
    else:
        is_device = emit.reshape(emit.entry_of_device(runs, i1), ())
    there, elsewhere = Block(), Block()
    conditional = IfOp.create(
        operands=[is_device], result_types=op.result_types, regions=[Region(there), Region(elsewhere)]
    )
    conditional.location = op.location
    Rewriter.insert_op(conditional, InsertPoint.before(op))
    op.detach()
    there.add_op(op)
    there.add_op(ReturnOp(*op.results))
    nothing = [_nothing(Emitter(InsertPoint.at_end(elsewhere), op), result) for result in op.results]
    elsewhere.add_op(ReturnOp(*nothing))
    for inner in operations(op):
        _forget_devices(inner, conditional)
        for index, operand in enumerate(inner.operands):
            if operand in sent and sent[operand].device == device:
                inner.operands[index] = sent[operand].value
    return conditional


def _nothing(emit: Emitter, result: OpResult) -> SSAValue:
    """Emit the value of `result` on the other devices: zeros, which do not change the all-reduce, or a token."""
    match result.type:
        case TensorType():
            return emit.filled(tensor_type(result), 0)
        case TokenType():
            return emit.insert(CreateTokenOp.create(result_types=[result.type]))
        case other:
            raise op_error(
                result.op, f"has a single-device sharding, but a result of type {other} cannot be sent to other devices"
            )


def _forget_devices(op: Operation, conditional: IfOp) -> None:
    """Remove the sharding of an operation in `conditional`, and replicate its operands in front of the conditional."""
    if isinstance(op, CollectiveOp):
        raise op_error(op, "is a collective in an operation with a single-device sharding")
    if isinstance(op, ReshardOp):
        Rewriter.replace_op(op, [], [op.input])
        return
    op.attributes.pop(SHARDING, None)
    for index, operand in enumerate(op.operands):
        if is_on_one_device(get_sharding(operand), op) and isinstance(reshard := operand.owner, ReshardOp):
            op.operands[index] = reshard.input
            if not operand.uses:
                Rewriter.erase_op(reshard)
        value = op.operands[index]
        sharding = get_sharding(value)
        if sharding is not None and not sharding.is_fully_replicated:
            replicated = TensorSharding.replicated_closed(sharding.mesh, sharding.rank)
            gather = AllGatherOp(value, sharding.dim_axes, replicated)
            op.operands[index] = Emitter(InsertPoint.before(conditional), op).insert(gather)


def _send_to_all(conditional: IfOp, everywhere: str, axes: Sequence[AxisRef]) -> list[SSAValue]:
    """All-reduce the results of `conditional`, which are zero on all devices along `axes` but one."""
    emit = Emitter(InsertPoint.after(conditional), conditional)
    return [
        result
        if isinstance(result.type, TokenType) or not axes
        else emit.insert(AllReduceOp(result, axes, TensorSharding.replicated_closed(everywhere, rank(result.type))))
        for result in conditional.results
    ]


def _replace_uses(uses: Sequence[Use], value: SSAValue) -> None:
    """Replace `uses` by the replicated `value`; a reshard of it becomes an all-slice, or is removed."""
    replicated = get_sharding(value)
    for use in uses:
        user = use.operation
        if not isinstance(user, ReshardOp) or replicated is None or user.sharding.data.mesh != replicated.mesh:
            user.operands[use.index] = value
        elif user.sharding.data == replicated:
            Rewriter.replace_op(user, [], [value])
        else:
            Rewriter.replace_op(user, AllSliceOp(value, user.sharding.data.dim_axes, user.sharding.data))
