"""Collectives, sends and receives. Each collective first exchanges its operands within its group."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation, SSAValue

from sdy import stablehlo
from sdy.diagnostics import op_error
from sdy.interpreter.bodies import body, tree_reduce
from sdy.interpreter.grid import Device, DeviceId, device_of
from sdy.interpreter.groups import channel_of, groups_of
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import TOKEN, Array, dtype_of, of_type, widened
from sdy.ir.shapes import shape_of
from sdy.stablehlo import TOKEN as TOKEN_TYPE
from sdy.stablehlo.checks.process_groups import RootedOp


def _find_group(interpreter: Interpreter, op: Operation, args: PythonValues) -> tuple[list[PythonValues], int] | None:
    """Exchange operands within this device's group.

    Returns:
        The operands of all members in the group's order, and the index of this device; None if it is in no group.
    """
    device = device_of(interpreter)
    for group in groups_of(op, device.grid):
        if device.id in group:
            operands = device.exchange(op, (op.name, channel_of(op)), group, args)
            return [operands[member] for member in group], group.index(device.id)
    return None


def _own_group(interpreter: Interpreter, op: Operation, args: PythonValues) -> tuple[list[PythonValues], int]:
    """Exchange operands like `_find_group`; raise DiagnosticError if this device is in no group."""
    group = _find_group(interpreter, op, args)
    if group is None:
        raise op_error(op, f"device {tuple(device_of(interpreter).id)} is in none of the replica groups")
    return group


def _zeros(values: Sequence[SSAValue]) -> PythonValues:
    return tuple(np.zeros(shape_of(value), dtype_of(value)) for value in values)


def _all_gather(interpreter: Interpreter, op: stablehlo.AllGatherOp, args: PythonValues) -> PythonValues:
    members, _ = _own_group(interpreter, op, args)
    return tuple(np.concatenate(parts, op.all_gather_dim.value.data) for parts in zip(*members, strict=True))


def _reduced(interpreter: Interpreter, op: Operation, members: Sequence[PythonValues]) -> list[Array]:
    """Reduce each operand over all members with the body."""
    combine = body(interpreter, op.regions[0])
    return [tree_reduce(combine, [np.stack(parts, axis=-1)])[0] for parts in zip(*members, strict=True)]


def _all_reduce(interpreter: Interpreter, op: stablehlo.AllReduceOp, args: PythonValues) -> PythonValues:
    members, _ = _own_group(interpreter, op, args)
    results = _reduced(interpreter, op, members)
    return tuple(of_type(result, value) for result, value in zip(results, op.results, strict=True))


def _reduce_scatter(interpreter: Interpreter, op: stablehlo.ReduceScatterOp, args: PythonValues) -> PythonValues:
    members, place = _own_group(interpreter, op, args)
    (result,) = _reduced(interpreter, op, members)
    return (of_type(np.split(result, len(members), op.scatter_dimension.value.data)[place], op.result),)


def _all_to_all(interpreter: Interpreter, op: stablehlo.AllToAllOp, args: PythonValues) -> PythonValues:
    members, place = _own_group(interpreter, op, args)
    split, concat, count = (
        int(number.value.data) for number in (op.split_dimension, op.concat_dimension, op.split_count)
    )
    return tuple(
        np.concatenate([np.split(cast(Array, part), count, split)[place] for part in parts], concat)
        for parts in zip(*members, strict=True)
    )


def _roots(op: RootedOp, args: PythonValues) -> tuple[PythonValues, list[int]]:
    """Return the data operands, and for each the index of its root in the group."""
    if op.has_dynamic_root is None:
        return args, [0] * len(args)
    return args[:-1], [int(root) for root in args[-1]]


def _collective_broadcast(
    interpreter: Interpreter, op: stablehlo.CollectiveBroadcastOp, args: PythonValues
) -> PythonValues:
    data, roots = _roots(op, args)
    group = _find_group(interpreter, op, data)
    if group is None:
        return _zeros(op.results)
    members, _ = group
    return tuple(members[root][number] for number, root in enumerate(roots))


def _collective_reduce(interpreter: Interpreter, op: stablehlo.CollectiveReduceOp, args: PythonValues) -> PythonValues:
    """Reduce to the root of each group; the other devices get zeros."""
    data, roots = _roots(op, args)
    zeros = _zeros(op.results)
    group = _find_group(interpreter, op, data)
    if group is None:
        return zeros
    members, place = group
    results = _reduced(interpreter, op, members)
    return tuple(
        of_type(result, value) if root == place else zero
        for result, value, root, zero in zip(results, op.results, roots, zeros, strict=True)
    )


def _cross_replica_sum(interpreter: Interpreter, op: stablehlo.CrossReplicaSumOp, args: PythonValues) -> PythonValues:
    members, _ = _own_group(interpreter, op, args)
    return (of_type(sum(widened(operand) for (operand,) in members), op.result),)


def _pairs(attribute: DenseIntOrFPElementsAttr) -> list[tuple[int, int]]:
    values = cast(Sequence[int], attribute.get_values())
    return list(zip(values[::2], values[1::2], strict=True))


def _collective_permute(
    interpreter: Interpreter, op: stablehlo.CollectivePermuteOp, args: PythonValues
) -> PythonValues:
    """Send to the target and receive from the source; a device without a source gets zeros."""
    pairs = _SourceTargetPairs(op, device_of(interpreter), op.source_target_pairs)
    pairs.send(op.name, args)
    return pairs.receive(op.name, op.results)


@dataclass(frozen=True)
class _SourceTargetPairs:
    """The source-target pairs of an operation, as seen by `device`."""

    op: Operation
    device: Device
    pairs: DenseIntOrFPElementsAttr

    def send(self, name: str, values: PythonValues) -> None:
        """Send `values` to the targets of this device."""
        for source, target in _pairs(self.pairs):
            if self._by_number(source) == self.device.id:
                self.device.send(self._channel(name, source, target), values)

    def receive(self, name: str, results: Sequence[SSAValue]) -> PythonValues:
        """Receive values from this device's source; zeros if it has none."""
        for source, target in _pairs(self.pairs):
            if self._by_number(target) == self.device.id:
                return self.device.receive(self.op, self._channel(name, source, target))
        return _zeros(results)

    def _channel(self, name: str, source: int, target: int) -> Hashable:
        return name, channel_of(self.op), self._by_number(source), self._by_number(target)

    def _by_number(self, number: int) -> DeviceId:
        replica, partition = self.device.id
        return DeviceId(replica, number) if channel_of(self.op) > 0 else DeviceId(number, partition)


def _partition_id(interpreter: Interpreter, op: stablehlo.PartitionIdOp, args: PythonValues) -> PythonValues:
    return (np.array(device_of(interpreter).id.partition, np.uint32),)


def _replica_id(interpreter: Interpreter, op: stablehlo.ReplicaIdOp, args: PythonValues) -> PythonValues:
    return (np.array(device_of(interpreter).id.replica, np.uint32),)


_SENT = "sent"


def _send(interpreter: Interpreter, op: stablehlo.SendOp, args: PythonValues) -> PythonValues:
    """Send to the host, from which a receive with the same channel gets the values, or to other devices."""
    device = device_of(interpreter)
    if op.source_target_pairs is None or op.source_target_pairs.get_shape() == (0, 2):
        device.send((_SENT, channel_of(op)), args[:-1])
    else:
        _SourceTargetPairs(op, device, op.source_target_pairs).send(_SENT, args[:-1])
    return (TOKEN,)


def _receive(interpreter: Interpreter, op: stablehlo.RecvOp, args: PythonValues) -> PythonValues:
    device = device_of(interpreter)
    if op.source_target_pairs is None or op.source_target_pairs.get_shape() == (0, 2):
        received = device.receive(op, (_SENT, channel_of(op)))
    else:
        received = _SourceTargetPairs(op, device, op.source_target_pairs).receive(_SENT, op.results[:-1])
    return (*received, TOKEN)


def _async_start(interpreter: Interpreter, op: stablehlo.AsyncStartOp, args: PythonValues) -> PythonValues:
    """Run the body immediately; the future is its result."""
    return interpreter.run_ssacfg_region(op.body, args)


def _async_done(interpreter: Interpreter, op: stablehlo.AsyncDoneOp, args: PythonValues) -> PythonValues:
    return args


def _infeed(interpreter: Interpreter, op: stablehlo.InfeedOp, args: PythonValues) -> PythonValues:
    queue = device_of(interpreter).grid.infeed
    if not queue:
        raise op_error(op, "reads from an empty infeed")
    values = queue.popleft()(interpreter)
    return (*values, TOKEN) if op.results[-1].type == TOKEN_TYPE else values


def _outfeed(interpreter: Interpreter, op: stablehlo.OutfeedOp, args: PythonValues) -> PythonValues:
    """Discard the values."""
    return (TOKEN,)


COLLECTIVES: dict[type[Operation], Implementation] = {
    stablehlo.AllGatherOp: _all_gather,
    stablehlo.AllReduceOp: _all_reduce,
    stablehlo.AllToAllOp: _all_to_all,
    stablehlo.AsyncDoneOp: _async_done,
    stablehlo.AsyncStartOp: _async_start,
    stablehlo.CollectiveBroadcastOp: _collective_broadcast,
    stablehlo.CollectivePermuteOp: _collective_permute,
    stablehlo.CollectiveReduceOp: _collective_reduce,
    stablehlo.CrossReplicaSumOp: _cross_replica_sum,
    stablehlo.InfeedOp: _infeed,
    stablehlo.OutfeedOp: _outfeed,
    stablehlo.PartitionIdOp: _partition_id,
    stablehlo.RecvOp: _receive,
    stablehlo.ReduceScatterOp: _reduce_scatter,
    stablehlo.ReplicaIdOp: _replica_id,
    stablehlo.SendOp: _send,
}
