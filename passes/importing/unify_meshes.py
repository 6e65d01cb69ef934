"""`sdy-unify-meshes`: several meshes over the same devices become one."""

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.common_mesh import CommonMesh
from sdy.dialect.attributes import ManualAxesAttr
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ManualComputationOp, MeshOp
from sdy.dialect.walk import operations, operations_of
from sdy.mesh import Mesh
from sdy.passes.common.editing import TellingPass, insert
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding


class UnifyMeshesPass(TellingPass):
    """Bring shardings on meshes that cut the same devices in other ways onto one mesh, through which they propagate.

    Before::

        sdy.mesh @one = <["x"=4, "y"=2]>
        sdy.mesh @other = <["p"=2, "q"=4]>
        ... %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}]>}
        %0 = sdy.sharding_constraint %arg0 <@other, [{"q"}]> : tensor<8xf32>

    After::

        sdy.mesh @one = <["x"=4, "y"=2]>
        sdy.mesh @other = <["p"=2, "q"=4]>
        sdy.mesh @common_mesh = <["x:(1)2"=2, "x:(2)2"=2, "y"=2]>
        ... %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@common_mesh, [{"x:(1)2", "x:(2)2"}]>}
        %0 = sdy.sharding_constraint %arg0 <@common_mesh, [{"x:(2)2", "y"}]> : tensor<8xf32>

    The meshes themselves stay, as the ones that a person knows. Where one of them is as finely cut as all, it is the
    common one. What has no sharding on the common mesh stays on its own: that is so where the numbers of devices along
    the axes share no factors in a common order (2 x 3 and 3 x 2), and where the devices are in unlike orders. A module
    with collectives of SDY, which say how its shardings were decided, is left alone.
    """

    name = "sdy-unify-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        meshes = named_meshes(op)
        used: dict[Mesh, None] = {}

        def mesh_of(sharding: TensorSharding) -> Mesh:
            return sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]

        def note(sharding: TensorSharding) -> TensorSharding:
            if (mesh := mesh_of(sharding)).axes:
                used.setdefault(mesh)
            return sharding

        transform_shardings(op, note)
        if len(used) < 2 or any(isinstance(each, CollectiveOp) for each in operations(op)):
            return
        common = CommonMesh.of([mesh for mesh in (*meshes.values(), *used) if mesh in used])
        computations = [(each, _mesh_of_body(each, mesh_of)) for each in operations_of(op, ManualComputationOp)]
        # What is written for one device names the axes of its mesh, all of which must be there.
        stays = {mesh for _, mesh in computations if mesh is not None and mesh not in common}
        name = _name_of(common.mesh, op)

        def unify(sharding: TensorSharding) -> TensorSharding:
            mesh = mesh_of(sharding)
            return sharding if mesh in stays else common.sharding(sharding, mesh, name) or sharding

        transform_shardings(op, unify)
        for computation, mesh in computations:
            if mesh is not None and mesh not in stays:
                axes = common.axes(map(AxisRef, computation.manual_axes.data), mesh) or ()
                in_order = sorted((axis.name for axis in axes), key=common.mesh.axis_index)
                computation.manual_axes = ManualAxesAttr(tuple(in_order))


def _name_of(mesh: Mesh, module: ModuleOp) -> str:
    """The name of `mesh`, which is added to `module` if it is not there."""
    symbols, there = Symbols(module), [op for op in module.ops if isinstance(op, MeshOp)]
    for op in there:
        if op.mesh.data == mesh:
            return op.sym_name.data
    added = MeshOp("common_mesh", mesh)
    insert(added, InsertPoint.after(there[-1]) if there else InsertPoint.at_start(module.body.block))
    return symbols.insert(added)


def _mesh_of_body(computation: ManualComputationOp, mesh_of: Callable[[TensorSharding], Mesh]) -> Mesh | None:
    """The mesh whose axes are manual in `computation`; None where it has neither inputs nor outputs."""
    shardings = (*computation.in_shardings.data, *computation.out_shardings.data)
    return next((mesh for sharding in shardings if (mesh := mesh_of(sharding)).axes), None)
