"""Context of `sdy-resolve-permutation-factors`, and the padding and slicing around a manual computation."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.constants import constant_elements
from sdy.dialect.shardings import get_sharding
from sdy.mesh import Mesh
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.emit.device_shards import shape_of
from sdy.passes.spmd.emit.exchange import Filler
from sdy.passes.spmd.emit.exchange_builder import Devices, TensorEmitter
from sdy.passes.spmd.local_module import Channels
from sdy.passes.spmd.plan.planner import Planner
from sdy.passes.spmd.shards.layout import Layout, mesh_of_devices
from sdy.sharding import TensorSharding
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import DeviceIdOp
from sdy.stablehlo.emitter import before
from sdy.stablehlo.padding import PadOp


@dataclass(frozen=True)
class Resolution:
    """The symbols of the module, and the planner of its halo exchanges."""

    symbols: Symbols
    device_id: type[DeviceIdOp]
    channels: Channels
    planner: Planner

    def devices(self, mesh: Mesh) -> Devices:
        """Return the devices of an exchange over `mesh`."""
        return Devices(mesh, self.device_id, self.channels)


def layout_of(value: SSAValue) -> Layout:
    """Return the layout of a value, by its type and sharding."""
    sharding = get_sharding(value)
    if sharding is None:
        return Layout(value.type)
    anchor = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    assert anchor is not None
    return Layout(value.type, sharding, mesh_of_devices(sharding, anchor))


def zero_filler(op: Operation, value: SSAValue) -> Filler:
    """Emit a zero of the element type of `value` in front of `op`, as a filler."""
    return Filler(before(op).filled(TensorType(tensor_type(value).element_type, ()), 0), is_zero=True)


def filler_of(value: SSAValue) -> Filler:
    """Return a scalar of the program as a filler."""
    return Filler(value, _is_zero(value))


def pad_to(op: Operation, value: SSAValue, shape: Sequence[int], filler: Filler, sharding: TensorSharding) -> SSAValue:
    """Pad the end of `value` with the filler to `shape`, in front of `op`."""
    high = [size - old for size, old in zip(shape, shape_of(value), strict=True)]
    if not any(high):
        return value
    return TensorEmitter(InsertPoint.before(op), op, sharding).insert(PadOp(value, filler.value, [0] * len(high), high))


def unpad(op: Operation, value: SSAValue, shape: Sequence[int], sharding: TensorSharding) -> SSAValue:
    """Slice `value` to `shape`: the inverse of `pad_to`."""
    if shape_of(value) == tuple(shape):
        return value
    return TensorEmitter(InsertPoint.before(op), op, sharding).slice(value, [0] * len(shape), shape)


def padded_along(value: SSAValue, dims: Collection[int]) -> list[int]:
    """Return the shape of a tensor with the dimensions padded that share mesh axes with `dims`, `dims` included."""
    layout = layout_of(value)
    return padded_over(layout, {axis.name for dim in dims for axis in layout.axes[dim]})


def padded_over(layout: Layout, names: Collection[str]) -> list[int]:
    """Return the shape of a tensor, padded for a manual computation over the mesh axes `names`.

    A dimension sharded by any sub-axis of these is padded too, because a manual axis is always a full axis.
    """
    return [
        padded if any(axis.name in names for axis in axes) else size
        for size, padded, axes in zip(layout.shape, layout.padded_shape, layout.axes, strict=True)
    ]


def _is_zero(value: SSAValue) -> bool:
    elements = constant_elements(value)
    return elements is not None and not any(elements.data.data)
