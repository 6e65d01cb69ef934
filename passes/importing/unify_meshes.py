"""`sdy-unify-meshes`: several meshes over the same devices become one."""

from collections.abc import Container, Mapping
from itertools import repeat

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.diagnostics import Where, warn
from sdy.dialect.attributes import ManualAxesAttr
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.mesh_syntax import mesh_text
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ManualComputationOp, MeshOp
from sdy.dialect.sharding_syntax import sharding_text
from sdy.dialect.shardings import func_result_shardings, get_sharding
from sdy.ir.editing import AnalysisPreservingPass, insert
from sdy.ir.walking import operations, operations_at_top, operations_of
from sdy.mesh import MOST_DEVICES, Mesh
from sdy.passes.common.num_bytes import num_bytes
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding
from sdy.warning_categories import LostShardingWarning


class UnifyMeshesPass(AnalysisPreservingPass):
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
    common one. A dimension that cannot be split so on the common mesh, as where the axes are of 2 x 3 and of 3 x 2
    devices, is left open, with a warning. What is on a mesh whose devices are in an unlike order stays there, and what
    is on one of more devices than a program can be made for. A module with collectives of SDY, which say how its
    shardings were decided, stays as it is.
    """

    name = "sdy-unify-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        meshes = named_meshes(op)
        used: dict[TensorSharding, Mesh] = {}

        def note(sharding: TensorSharding) -> TensorSharding:
            # Attributes that are not SDY's may speak of a mesh that is not there.
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
            if mesh is not None and 1 < mesh.size <= MOST_DEVICES:
                used[sharding] = mesh
            return sharding

        transform_shardings(op, note)
        there = dict.fromkeys(used.values())
        if len(there) < 2 or any(isinstance(each, CollectiveOp) for each in operations(op)):
            return
        from sdy.common_mesh import CommonMesh  # numbers of devices are arrays there, for which few programs ask

        common = CommonMesh.of([mesh for mesh in (*meshes.values(), *there) if mesh in there])
        computations = [(each, _mesh_of_body(each, used)) for each in operations_of(op, ManualComputationOp)]
        # What is written for one device names the axes of its mesh, all of which must be there.
        stay = {mesh for _, mesh in computations if mesh is not None and mesh not in common}
        name = _name_of(common.mesh, op)
        moved = {sharding: common.sharding(sharding, mesh, name) for sharding, mesh in used.items() if mesh not in stay}
        loosened = {
            sharding: loose
            for sharding, new in moved.items()
            if new is None and (loose := common.loosened(sharding, used[sharding], name))
        }
        if loosened:
            _tell(op, loosened, common.mesh)
        transform_shardings(op, lambda sharding: moved.get(sharding) or loosened.get(sharding) or sharding)
        for computation, mesh in computations:
            if mesh is not None and mesh not in stay:
                axes = common.axes(map(AxisRef, computation.manual_axes.data), mesh) or ()
                in_order = sorted((axis.name for axis in axes), key=common.mesh.axis_index)
                computation.manual_axes = ManualAxesAttr(tuple(in_order))


def _tell(module: ModuleOp, loosened: Container[TensorSharding], mesh: Mesh) -> None:
    """Warn of each value whose sharding is one of those that are `loosened`."""
    given: list[tuple[Where, Attribute, TensorSharding | None]] = []
    for op in operations(module):
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        given += [(value, value.type, get_sharding(value)) for value in (*arguments, *op.results)]
        if isinstance(op, FuncOp):
            given += zip(repeat(op), op.function_type.outputs, func_result_shardings(op))
    for where, type_, sharding in given:
        if sharding is not None and sharding in loosened:
            warn(
                where,
                f"the mesh {mesh_text(mesh)} cannot be cut as the sharding {sharding_text(sharding)} of "
                f"{num_bytes(type_):,} bytes asks: these dimensions are left open",
                category=LostShardingWarning,
            )


def _name_of(mesh: Mesh, module: ModuleOp) -> str:
    """The name of `mesh`, which is added to `module` if it is not there."""
    symbols, there = Symbols(module), [op for op in operations_at_top(module) if isinstance(op, MeshOp)]
    for op in there:
        if op.mesh.data == mesh:
            return op.sym_name.data
    added = MeshOp("common_mesh", mesh)
    insert(added, InsertPoint.after(there[-1]) if there else InsertPoint.at_start(module.body.block))
    return symbols.insert(added)


def _mesh_of_body(computation: ManualComputationOp, meshes: Mapping[TensorSharding, Mesh]) -> Mesh | None:
    """The mesh whose axes are manual in `computation`; None where it has neither inputs nor outputs."""
    shardings = (*computation.in_shardings.data, *computation.out_shardings.data)
    return next((meshes[sharding] for sharding in shardings if sharding in meshes), None)
