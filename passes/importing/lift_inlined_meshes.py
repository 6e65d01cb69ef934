"""`sdy-lift-inlined-meshes`: replace inline meshes by named ones, and deduplicate named meshes."""

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint

from sdy.dialect.ops import MeshOp
from sdy.ir.editing import AnalysisPreservingPass, insert
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.passes.common.sharding_walk import transform_meshes
from sdy.passes.common.symbols import Symbols


class LiftInlinedMeshesPass(AnalysisPreservingPass):
    """Replace inline meshes in attributes by references to `sdy.mesh` operations, one for each distinct mesh.

    Before::

        sdy.mesh @a = <["x"=2]>
        sdy.mesh @b = <["x"=2]>
        func.func @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>},
                        %1: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["y"=4]>, [{"y"}]>}) { ... }

    After::

        sdy.mesh @a = <["x"=2]>
        sdy.mesh @mesh = <["y"=4]>
        func.func @main(%0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>},
                        %1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) { ... }

    The attributes are shardings and the replica groups of StableHLO's collectives. A new mesh is named `mesh`,
    `empty_mesh`, or `maximal_mesh_N` for the single device N, with a suffix if that name is in use. Every mesh
    operation also gets the attribute `stablehlo.mesh`, the same mesh in StableHLO's format.
    """

    name = "sdy-lift-inlined-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        names: dict[str | Mesh, str] = {}
        last_mesh: MeshOp | None = None
        for mesh in [operation for operation in operations_at_top(op) if isinstance(operation, MeshOp)]:
            name = mesh.sym_name.data
            if mesh.mesh.data in names:
                names[name] = names[mesh.mesh.data]
                symbols.erase(mesh)
            else:
                names[mesh.mesh.data] = name
                last_mesh = mesh
        place = InsertPoint.after(last_mesh) if last_mesh else InsertPoint.at_start(op.body.block)

        def lift(mesh: str | Mesh) -> str | Mesh:
            if isinstance(mesh, Mesh) and mesh not in names:
                named = MeshOp(_name_for(mesh), mesh)
                insert(named, place)
                names[mesh] = symbols.insert(named)
            return names.get(mesh, mesh)

        transform_meshes(op, lift)
        for mesh in operations_at_top(op):
            if isinstance(mesh, MeshOp):
                mesh.attributes.setdefault("stablehlo.mesh", _stablehlo_mesh(mesh.mesh.data))


def _name_for(mesh: Mesh) -> str:
    if mesh.is_maximal:
        return f"maximal_mesh_{mesh.device_ids[0]}"
    return "empty_mesh" if mesh.is_empty else "mesh"


def _stablehlo_mesh(mesh: Mesh) -> DictionaryAttr:
    axes = [DictionaryAttr({"name": StringAttr(name), "size": IntegerAttr(size, i64)}) for name, size in mesh.axes]
    fields: dict[str, Attribute] = {"axes": ArrayAttr(axes)}
    if mesh.device_ids:
        kind = TensorType(i64, [len(mesh.device_ids)])
        fields["device_ids"] = DenseIntOrFPElementsAttr.from_list(kind, mesh.device_ids)
    return DictionaryAttr(fields)
