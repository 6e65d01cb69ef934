"""`sdy-unify-meshes`: convert shardings on several meshes over the same devices to one common mesh."""

from collections.abc import Container, Mapping
from itertools import repeat

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint

from sdy.axes import AxisRef
from sdy.diagnostics import LostShardingWarning, Where, warn
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
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding


class UnifyMeshesPass(AnalysisPreservingPass):
    """Convert shardings on different meshes over the same devices to a common mesh, on which they propagate.

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

    The original meshes are kept: the user knows them. If one of them refines all others, it is the common mesh. A
    dimension whose sharding has no equivalent on the common mesh, for example with axes of 2 x 3 and of 3 x 2 devices,
    is left open, with a warning. Shardings are not converted if their mesh has an incompatible device order or too many
    devices. A module with SDY collectives is not changed: its reshards have been decided already.
    """

    name = "sdy-unify-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        meshes = named_meshes(op)
        used: dict[TensorSharding, Mesh] = {}

        def note(sharding: TensorSharding) -> TensorSharding:
            # Attributes of other dialects may refer to a mesh that does not exist.
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes.get(sharding.mesh)
            if mesh is not None and 1 < mesh.size <= MOST_DEVICES:
                used[sharding] = mesh
            return sharding

        transform_shardings(op, note)
        used_meshes = dict.fromkeys(used.values())
        if len(used_meshes) < 2 or any(isinstance(each, CollectiveOp) for each in operations(op)):
            return
        from sdy.common_mesh import CommonMesh  # imports NumPy, which few programs need

        common = CommonMesh.of([mesh for mesh in (*meshes.values(), *used_meshes) if mesh in used_meshes])
        computations = [(each, _mesh_of_body(each, used)) for each in operations_of(op, ManualComputationOp)]
        # The body of a manual computation refers to axes of its mesh: the common mesh must have them all.
        kept = {mesh for _, mesh in computations if mesh is not None and mesh not in common}
        name = _name_of(common.mesh, op)
        unified = {
            sharding: common.sharding(sharding, mesh, name) for sharding, mesh in used.items() if mesh not in kept
        }
        loosened = {
            sharding: loose
            for sharding, new in unified.items()
            if new is None and (loose := common.loosened(sharding, used[sharding], name))
        }
        if loosened:
            _warn(op, loosened, common.mesh)
        transform_shardings(op, lambda sharding: unified.get(sharding) or loosened.get(sharding) or sharding)
        for computation, mesh in computations:
            if mesh is not None and mesh not in kept:
                axes = common.axes(map(AxisRef, computation.manual_axes.data), mesh) or ()
                in_order = sorted((axis.name for axis in axes), key=common.mesh.axis_index)
                computation.manual_axes = ManualAxesAttr(tuple(in_order))


def _warn(module: ModuleOp, loosened: Container[TensorSharding], mesh: Mesh) -> None:
    """Warn of each value whose sharding is in `loosened`."""
    places: list[tuple[Where, Attribute, TensorSharding | None]] = []
    for op in operations(module):
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        places += [(value, value.type, get_sharding(value)) for value in (*arguments, *op.results)]
        if isinstance(op, FuncOp):
            places += zip(repeat(op), op.function_type.outputs, func_result_shardings(op))
    for where, type_, sharding in places:
        if sharding is not None and sharding in loosened:
            warn(
                where,
                f"the sharding {sharding_text(sharding)} of {num_bytes(type_):,} bytes has no equivalent on the "
                f"common mesh {mesh_text(mesh)}; the affected dimensions are left open",
                category=LostShardingWarning,
            )


def _name_of(mesh: Mesh, module: ModuleOp) -> str:
    """Return the name of `mesh` in `module`, adding the mesh if it does not exist."""
    symbols, mesh_ops = Symbols(module), [op for op in operations_at_top(module) if isinstance(op, MeshOp)]
    for op in mesh_ops:
        if op.mesh.data == mesh:
            return op.sym_name.data
    added = MeshOp("common_mesh", mesh)
    insert(added, InsertPoint.after(mesh_ops[-1]) if mesh_ops else InsertPoint.at_start(module.body.block))
    return symbols.insert(added)


def _mesh_of_body(computation: ManualComputationOp, meshes: Mapping[TensorSharding, Mesh]) -> Mesh | None:
    """Return the mesh of the manual axes of `computation`; None if it has neither inputs nor outputs."""
    shardings = (*computation.in_shardings.data, *computation.out_shardings.data)
    return next((meshes[sharding] for sharding in shardings if sharding in meshes), None)
