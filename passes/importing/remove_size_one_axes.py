"""`sdy-remove-size-one-axes`: remove axes of size 1 from shardings."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.axes import AxisRef
from sdy.dialect.meshes import named_meshes
from sdy.ir.editing import AnalysisPreservingPass
from sdy.mesh import Mesh
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.sharding import TensorSharding


class RemoveSizeOneAxesPass(AnalysisPreservingPass):
    """Remove axes of size 1 from shardings: they shard nothing, but can cause conflicts in propagation.

    Before::

        sdy.mesh @mesh = <["x"=2, "y"=1]>
        ... #sdy.sharding<@mesh, [{"x", "y"}, {"y", ?}], replicated={"y"}>

    After::

        sdy.mesh @mesh = <["x"=2, "y"=1]>
        ... #sdy.sharding<@mesh, [{"x"}, {?}]>
    """

    name = "sdy-remove-size-one-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        meshes = named_meshes(op)
        if all(size != 1 for mesh in meshes.values() for _, size in mesh.axes):
            return

        def shrink(sharding: TensorSharding) -> TensorSharding:
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]
            return replace(
                sharding.map_dims(lambda dim: replace(dim, axes=_larger(dim.axes, mesh)).without_idle_priority()),
                replicated=_larger(sharding.replicated, mesh),
                unreduced=_larger(sharding.unreduced, mesh),
            )

        transform_shardings(op, shrink)


def _larger(axes: tuple[AxisRef, ...], mesh: Mesh) -> tuple[AxisRef, ...]:
    return tuple(axis for axis in axes if axis.size_in(mesh) != 1)
