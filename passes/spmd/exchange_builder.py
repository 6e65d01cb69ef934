"""The manual computation in which devices exchange parts of tensors: making one, and what is done in its body.

Its body is the program of one device as far as the axes are concerned along which something is exchanged. Others stay
as they were, so that what follows there is partitioned along them later.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.axes import AxisRef
from sdy.device_groups import device_groups, shard_indices
from sdy.dialect.data_flow import without_manual_axes
from sdy.dialect.ops import ManualComputationOp, ReturnOp
from sdy.dialect.shardings import set_sharding
from sdy.ir.shapes import is_scalar
from sdy.mesh import Mesh
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.target import Channels
from sdy.sharding import TensorSharding
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.constants import DeviceIdOp, IotaOp
from sdy.stablehlo.elementwise import DivOp, MulOp, RemOp
from sdy.stablehlo.emitter import Emitter

Tensor = tuple[SSAValue, TensorSharding]
"""A tensor and how it is laid out."""


class TensorEmitter(Emitter):
    """Inserts operations, and gives the result of each a sharding, unless it is a scalar."""

    def __init__(self, place: InsertPoint, source: Operation, sharding: TensorSharding):
        super().__init__(place, source)
        self._sharding = sharding

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op` and return its first result."""
        result = super().insert(op)
        if not is_scalar(result):
            set_sharding(result, self._sharding)
        return result


@dataclass(frozen=True)
class Devices:
    """The devices that take part: their mesh, how one of them knows which it is, and channels for their collectives."""

    mesh: Mesh
    device_id: type[DeviceIdOp]
    channels: Channels


class ExchangeBuilder:
    """Makes a manual computation over `manual_axes`, operation by operation, because of the operation `source`."""

    def __init__(self, source: Operation, tensors: Sequence[Tensor], manual_axes: Collection[str], devices: Devices):
        mesh = devices.mesh
        self.source = source
        self.devices = devices
        self._tensors = tensors
        self._manual_axes = [name for name in mesh.axis_names if name in manual_axes]
        types = [self.local_type(value.type, sharding) for value, sharding in tensors]
        self._block = Block(arg_types=types)
        self.scalars = Emitter(InsertPoint.at_end(self._block), source, devices.device_id)

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """The tensors, as a device has them."""
        return self._block.args

    def local_type(self, type_: Attribute, sharding: TensorSharding) -> Attribute:
        """The type that a device has of a tensor of `type_`, as far as manual axes split it."""
        return Layout(type_, self._manual(sharding), self.devices.mesh).local_type(self.source)

    def _manual(self, sharding: TensorSharding) -> TensorSharding:
        """`sharding` without the axes that are not manual."""
        return sharding.map_dims(
            lambda dim: replace(dim, axes=tuple(axis for axis in dim.axes if axis.name in self._manual_axes))
        )

    def tensors(self, sharding: TensorSharding) -> TensorEmitter:
        """Inserts operations whose results are laid out, outside, as `sharding` says."""
        inside = without_manual_axes(sharding, self._manual_axes)
        return TensorEmitter(InsertPoint.at_end(self._block), self.source, inside)

    def compute(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Insert an operation whose results are laid out, outside, as `shardings` say."""
        self.scalars.insert(op)
        for result, sharding in zip(op.results, shardings, strict=True):
            set_sharding(result, without_manual_axes(sharding, self._manual_axes))

    def permute(self, emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], moves: Mapping[int, int]) -> SSAValue:
        """`value` of another device: along `axes`, part t receives that of part `moves[t]`; zeros where there is none.

        The pairs are in the order of the senders' places in the mesh.
        """
        mesh = self.devices.mesh
        sender_of = {
            group[receiver]: group[sender] for group in device_groups(axes, mesh) for receiver, sender in moves.items()
        }
        place = {device: index for index, device in enumerate(mesh.device_order())}
        pairs = sorted(((s, r) for r, s in sender_of.items()), key=lambda pair: place[pair[0]])
        numbers = [number for pair in pairs for number in pair]
        properties: dict[str, Attribute] = {
            "source_target_pairs": DenseIntOrFPElementsAttr.from_list(TensorType(i64, (len(pairs), 2)), numbers),
            "channel_handle": self.devices.channels.next(),
        }
        return emit.insert(
            CollectivePermuteOp.create(operands=[value], properties=properties, result_types=[value.type])
        )

    def by_part(self, axes: Sequence[AxisRef], numbers: Sequence[int]) -> SSAValue:
        """The one of `numbers`, one for each part along `axes`, that belongs to the running device: `tensor<i64>`.

        It is computed where it grows steadily from part to part, and else read from a table.
        """
        emit = self.scalars
        index = self._part_index(axes)
        steps = {after - before for before, after in pairwise(numbers)}
        if len(steps) > 1:
            return self._entry(numbers, index)
        step, first = emit.integers([steps.pop()], ()), emit.integers([numbers[0]], ())
        return emit.add(emit.binary(MulOp, index, step), first)

    def places(self, axes: Sequence[AxisRef], starts: Sequence[int], length: int) -> SSAValue:
        """The `length` places from the one of `starts` on that belongs to the running device, one after the other."""
        emit = self.scalars
        start = emit.broadcast(self.by_part(axes, starts), (), (length,))
        return emit.add(emit.insert(IotaOp(0, TensorType(i64, (length,)))), start)

    def _part_index(self, axes: Sequence[AxisRef]) -> SSAValue:
        emit, mesh = self.scalars, self.devices.mesh
        device = emit.device_id()
        if mesh.device_ids:
            return self._entry(shard_indices(axes, mesh), device)
        index: SSAValue | None = None
        for axis in axes:
            digit = _digit(emit, device, axis, mesh)
            if index is not None:
                digit = emit.add(emit.binary(MulOp, index, emit.integers([axis.size_in(mesh)], ())), digit)
            index = digit
        assert index is not None
        return index

    def _entry(self, table: Sequence[int], index: SSAValue) -> SSAValue:
        emit = self.scalars
        return emit.reshape(emit.dynamic_slice(emit.integers(table, (len(table),)), [index], (1,)), ())

    def finish(
        self,
        results: Sequence[SSAValue],
        types: Sequence[Attribute],
        shardings: Sequence[TensorSharding],
        at: InsertPoint | None = None,
    ) -> Sequence[SSAValue]:
        """Put the computation in front of its source, or where `at` says.

        Its results, of `types`, are laid out as `shardings` say.
        """
        self._block.add_op(ReturnOp(*results))
        computation = ManualComputationOp(
            [value for value, _ in self._tensors],
            Region(self._block),
            types,
            [sharding for _, sharding in self._tensors],
            shardings,
            self._manual_axes,
        )
        computation.location = self.source.location
        Rewriter.insert_op(computation, at or InsertPoint.before(self.source))
        return computation.results


def _digit(emit: Emitter, device: SSAValue, axis: AxisRef, mesh: Mesh) -> SSAValue:
    """Where `device` stands along `axis`, the devices being in their natural order."""
    minor_axes = mesh.axis_names[mesh.axis_index(axis.name) + 1 :]
    stride = mesh.axis_size(axis.name) // axis.end_in(mesh)
    for name in minor_axes:
        stride *= mesh.axis_size(name)
    size = axis.size_in(mesh)
    if stride > 1:
        device = emit.binary(DivOp, device, emit.integers([stride], ()))
    if size < mesh.size:
        device = emit.binary(RemOp, device, emit.integers([size], ()))
    return device
