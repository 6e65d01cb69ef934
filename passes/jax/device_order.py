"""Renumbering of device ids to XLA's partition ids.

XLA numbers the devices of a program in the order of jax's device list, which is the device order of the mesh. A mesh
may declare other device ids, which the local program uses; these are replaced by positions in the mesh.
"""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType, i64

from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import PartitionIdOp
from sdy.stablehlo.emitter import after

_DEVICE_LISTS = ("replica_groups", "source_target_pairs")


def renumber_devices(module: ModuleOp, mesh: Mesh) -> None:
    """Replace the device ids in `module`, a local program, by positions in `mesh`, in place."""
    order = mesh.device_order()
    if order == tuple(range(mesh.size)):
        return
    places = {device: place for place, device in enumerate(order)}
    for op in operations(module):
        if isinstance(op, PartitionIdOp):
            _look_up(op, order)
        for name in _DEVICE_LISTS:
            if isinstance(devices := op.properties.get(name), DenseIntOrFPElementsAttr):
                # Shorter groups are padded with -1.
                renumbered = [places.get(int(device), -1) for device in devices.get_values()]
                type_ = TensorType(i64, devices.get_shape())
                op.properties[name] = DenseIntOrFPElementsAttr.from_list(type_, renumbered)


def _look_up(op: PartitionIdOp, order: tuple[int, ...]) -> None:
    """Convert the result of `op`, now a position in the mesh, to the device id."""
    uses = list(op.result.uses)
    emit = after(op)
    device = emit.convert(emit.of_device(order), tensor_type(op.result).element_type)
    for use in uses:
        use.operation.operands[use.index] = device
