"""`sdy.manual_computation` in a program that is not partitioned: for its body the program becomes that of each device.

Around it there are whole tensors, which one device computes for all. The body is run by all devices of its mesh, each
on its parts along the manual axes; the parts of the results are put together again. Where that is in another such body
already, each device takes part in both.
"""

from functools import partial

from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy.axes import AxisRef
from sdy.device_groups import device_groups
from sdy.diagnostics import op_error
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ManualComputationOp
from sdy.interpreter.grid import Device, DeviceId, Grid, device_of, interpreter_of
from sdy.interpreter.shards import AxesOfDims, shard, together
from sdy.interpreter.tables import Implementation
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


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
        raise op_error(op, f"is for {mesh.size} devices, but {count} run it")

    def on_device(device: Device) -> PythonValues:
        return _run_on_device(interpreter_of(device, interpreter), op, mesh, args)

    programs = {DeviceId(0, device): on_device for device in range(mesh.size)}
    return Grid(1, mesh.size, grid.infeed).run(programs)[DeviceId(0, 0)]


def _run_on_device(interpreter: Interpreter, op: ManualComputationOp, mesh: Mesh, args: PythonValues) -> PythonValues:
    """The whole results, of the whole operands."""
    device, axes_of_dims = device_of(interpreter), partial(_manual_axes, op)
    number = device.id.partition
    parts = tuple(
        shard(whole, axes_of_dims(sharding), mesh, number)
        for whole, sharding in zip(args, op.in_shardings.data, strict=True)
    )
    results = interpreter.run_ssacfg_region(op.body, parts)
    groups = device_groups([AxisRef(name) for name in op.manual_axes.data], mesh)
    group = tuple(DeviceId(0, member) for members in groups if number in members for member in members)
    brought = device.meet(op, op.name, group, results)
    return tuple(
        together({member.partition: brought[member][index] for member in group}, axes_of_dims(sharding), mesh)
        for index, sharding in enumerate(op.out_shardings.data)
    )


def _manual_axes(op: ManualComputationOp, sharding: TensorSharding) -> AxesOfDims:
    """The axes of `sharding` along which the body has parts."""
    return [[axis for axis in axes if axis.name in op.manual_axes.data] for axes in sharding.dim_axes]


MANUAL: dict[type[Operation], Implementation] = {ManualComputationOp: _manual_computation}
