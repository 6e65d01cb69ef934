"""Manual computations in unpartitioned programs, and the shards of their arrays.

Operations outside of the body work on global tensors, and run on one device. The body runs on all devices of the mesh,
each with its shards along the manual axes; the shards of the results are assembled. In a nested manual computation, the
devices of the outer one run the inner body too.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy.axes import AxisRef, total_size
from sdy.device_groups import device_groups, shard_indices
from sdy.diagnostics import op_error
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ManualComputationOp
from sdy.interpreter.grid import Device, DeviceId, Grid, device_of, interpreter_of
from sdy.interpreter.tables import Implementation
from sdy.interpreter.values import Array
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding

AxesOfDims = Sequence[Sequence[AxisRef]]
"""The axes of each dimension."""


def _manual_computation(interpreter: Interpreter, op: ManualComputationOp, args: PythonValues) -> PythonValues:
    shardings = (*op.in_shardings.data, *op.out_shardings.data)
    if not shardings:
        return interpreter.run_ssacfg_region(op.body, args)
    if any(sharding.unreduced for sharding in shardings):
        raise op_error(op, "with unreduced axes cannot be interpreted")
    mesh, grid = mesh_of(shardings[0], op), device_of(interpreter).grid
    count = grid.replicas * grid.partitions
    if count == mesh.size:
        return _run_on_device(interpreter, op, mesh, args)
    if count > 1:
        raise op_error(op, f"has a mesh of {mesh.size} devices, but runs on {count} devices")

    def on_device(device: Device) -> PythonValues:
        return _run_on_device(interpreter_of(device, interpreter), op, mesh, args)

    programs = {DeviceId(0, device): on_device for device in range(mesh.size)}
    return Grid(1, mesh.size, grid.infeed).run(programs)[DeviceId(0, 0)]


def _run_on_device(interpreter: Interpreter, op: ManualComputationOp, mesh: Mesh, args: PythonValues) -> PythonValues:
    """Run the body on this device; operands and results are global tensors."""
    device, axes_of_dims = device_of(interpreter), partial(_manual_axes, op)
    number = device.id.partition
    shards = tuple(
        shard(array, axes_of_dims(sharding), mesh, number)
        for array, sharding in zip(args, op.in_shardings.data, strict=True)
    )
    results = interpreter.run_ssacfg_region(op.body, shards)
    groups = device_groups([AxisRef(name) for name in op.manual_axes.data], mesh)
    group = tuple(DeviceId(0, member) for members in groups if number in members for member in members)
    exchanged = device.exchange(op, op.name, group, results)
    return tuple(
        assemble({member.partition: exchanged[member][index] for member in group}, axes_of_dims(sharding), mesh)
        for index, sharding in enumerate(op.out_shardings.data)
    )


def _manual_axes(op: ManualComputationOp, sharding: TensorSharding) -> AxesOfDims:
    """Return the manual axes of `sharding` for each dimension."""
    return [[axis for axis in axes if axis.name in op.manual_axes.data] for axes in sharding.dim_axes]


def shard(array: Array, axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> Array:
    """Return the shard of `array` on `device`; the axes must divide the dimensions."""
    return array[_slices(array.shape, axes_of_dims, mesh, device)]


def assemble(shards: Mapping[int, Array], axes_of_dims: AxesOfDims, mesh: Mesh) -> Array:
    """Assemble the global array from its `shards` by device."""
    first = next(iter(shards.values()))
    shape = [size * total_size(axes, mesh) for size, axes in zip(first.shape, axes_of_dims, strict=True)]
    array = np.empty(shape, first.dtype)
    for device, part in shards.items():
        array[_slices(shape, axes_of_dims, mesh, device)] = part
    return array


def _slices(shape: Sequence[int], axes_of_dims: AxesOfDims, mesh: Mesh, device: int) -> tuple[slice, ...]:
    slices: list[slice] = []
    for size, axes in zip(shape, axes_of_dims, strict=True):
        part = size // total_size(axes, mesh)
        start = shard_indices(axes, mesh)[device] * part
        slices.append(slice(start, start + part))
    return tuple(slices)


MANUAL: dict[type[Operation], Implementation] = {ManualComputationOp: _manual_computation}
