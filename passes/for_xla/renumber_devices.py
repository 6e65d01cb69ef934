"""`sdy-renumber-devices`: number devices by their positions in the mesh, as XLA does."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType, i64
from xdsl.passes import ModulePass

from sdy.dialect.attributes import MeshAttr
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.ir.walking import operations, operations_at_top
from sdy.mesh import Mesh
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.constants import PartitionIdOp
from sdy.stablehlo.emitter import after

_DEVICE_LISTS = ("replica_groups", "source_target_pairs")


@dataclass(frozen=True)
class RenumberDevicesPass(ModulePass):
    """Replace the device ids of a local program by positions in its mesh.

    XLA numbers the devices of a program in the order of jax's device list, which is the device order of the mesh.

    Before::

        sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>
        %0 = stablehlo.partition_id : tensor<ui32>
        %1 = "stablehlo.collective_permute"(%arg0) {source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}

    After, where the table `[1, 0]` maps a position to a device id::

        sdy.mesh @mesh = <["x"=2]>
        %2 = stablehlo.partition_id : tensor<ui32>
        %0 = [1, 0] at %2
        %1 = "stablehlo.collective_permute"(%arg0) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
    """

    name = "sdy-renumber-devices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mesh = next((mesh for mesh in named_meshes(op).values() if mesh.axes), None)
        if mesh is None or not mesh.device_ids:
            return
        order = mesh.device_ids
        places = {device: place for place, device in enumerate(order)}
        for operation in operations(op):
            if isinstance(operation, PartitionIdOp):
                _look_up(operation, order)
            for name in _DEVICE_LISTS:
                if isinstance(devices := operation.properties.get(name), DenseIntOrFPElementsAttr):
                    # Shorter groups are padded with -1.
                    renumbered = [places.get(int(device), -1) for device in devices.get_values()]
                    type_ = TensorType(i64, devices.get_shape())
                    operation.properties[name] = DenseIntOrFPElementsAttr.from_list(type_, renumbered)
        for declaration in operations_at_top(op):
            if isinstance(declaration, MeshOp) and (ids := declaration.mesh.data.device_ids):
                axes = declaration.mesh.data.axes
                declaration.mesh = MeshAttr(Mesh(axes, tuple(places.get(device, device) for device in ids)))


def _look_up(op: PartitionIdOp, order: tuple[int, ...]) -> None:
    """Convert the result of `op`, now a position in the mesh, to the device id."""
    uses = list(op.result.uses)
    emit = after(op)
    device = emit.convert(emit.of_device(order), tensor_type(op.result).element_type)
    for use in uses:
        use.operation.operands[use.index] = device
