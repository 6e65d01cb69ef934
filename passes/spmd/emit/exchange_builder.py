"""Builder of the manual computation in which devices exchange rows of their shards.

Only the axes of the exchange are manual: the body is a per-device program along these. Along all other axes, the
tensors in the body keep their shardings and are partitioned later.
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
from sdy.passes.spmd.local_module import Channels
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import TensorSharding
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.constants import DeviceIdOp, IotaOp
from sdy.stablehlo.elementwise import DivOp, MulOp, RemOp
from sdy.stablehlo.emitter import Emitter

Tensor = tuple[SSAValue, TensorSharding]
"""A tensor and its sharding."""


class TensorEmitter(Emitter):
    """Emitter that sets a sharding on the result of each operation that is not a scalar."""

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
    """The devices of an exchange."""

    mesh: Mesh
    device_id: type[DeviceIdOp]
    """The operation that returns the id of the running device."""
    channels: Channels
    """The generator of channel ids for collectives."""


class ExchangeBuilder:
    """Builds the manual computation over `manual_axes` for the exchange that the operation `source` needs."""

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
        """The local shards of the tensors: the block arguments of the computation."""
        return self._block.args

    def local_type(self, type_: Attribute, sharding: TensorSharding) -> Attribute:
        """Return the type of a tensor in the computation: `type_`, with the dimensions divided by their manual axes."""
        return Layout(type_, self._manual(sharding), self.devices.mesh).local_type(self.source)

    def _manual(self, sharding: TensorSharding) -> TensorSharding:
        """Return `sharding` restricted to the manual axes."""
        return sharding.map_dims(
            lambda dim: replace(dim, axes=tuple(axis for axis in dim.axes if axis.name in self._manual_axes))
        )

    def tensors(self, sharding: TensorSharding) -> TensorEmitter:
        """Return an emitter of operations in the computation whose results have the global sharding `sharding`."""
        inside = without_manual_axes(sharding, self._manual_axes)
        return TensorEmitter(InsertPoint.at_end(self._block), self.source, inside)

    def compute(self, op: Operation, shardings: Sequence[TensorSharding]) -> None:
        """Insert an operation in the computation whose results have these global shardings."""
        self.scalars.insert(op)
        for result, sharding in zip(op.results, shardings, strict=True):
            set_sharding(result, without_manual_axes(sharding, self._manual_axes))

    def permute(self, emit: Emitter, value: SSAValue, axes: Sequence[AxisRef], moves: Mapping[int, int]) -> SSAValue:
        """Emit a collective permute along `axes`: shard t receives `value` of shard `moves[t]`, or zeros without one.

        The source-target pairs are sorted by the position of the source in the mesh.
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
        """Emit the element of `numbers`, which has one for each shard along `axes`, of the running device.

        The `tensor<i64>` is an affine function of the shard index if `numbers` have a constant step, and otherwise a
        table lookup.
        """
        emit = self.scalars
        index = self._part_index(axes)
        steps = {after - before for before, after in pairwise(numbers)}
        if len(steps) > 1:
            return self._entry(numbers, index)
        step, first = emit.integers([steps.pop()], ()), emit.integers([numbers[0]], ())
        return emit.add(emit.binary(MulOp, index, step), first)

    def places(self, axes: Sequence[AxisRef], starts: Sequence[int], length: int) -> SSAValue:
        """Emit the `length` consecutive positions from the start of the running device's shard on.

        `starts` has one number for each shard along `axes`.
        """
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
        """Insert the computation and return its results.

        Args:
            results: The values that the body returns.
            types: The global types of the results.
            shardings: The shardings of the results.
            at: The insertion point; in front of the source by default.
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
    """Emit the coordinate of `device` along `axis` of a mesh with the default device order."""
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
