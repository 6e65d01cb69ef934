"""`sdy-inline-meshes`: replace mesh symbols by inline meshes."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.passes.common.sharding_walk import transform_meshes
from sdy.passes.common.symbols import Symbols


class InlineMeshesPass(ModulePass):
    """Replace references to meshes by inline meshes, and remove the `sdy.mesh` operations.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) ...

    After::

        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) ...

    References occur in shardings and in the replica groups of StableHLO's collectives.
    """

    name = "sdy-inline-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_meshes(op)


def inline_meshes(module: ModuleOp) -> None:
    """Replace references to meshes in `module` by the meshes, and erase the mesh operations."""
    meshes = named_meshes(module)

    def inline(mesh: str | Mesh) -> str | Mesh:
        return meshes.get(mesh, mesh) if isinstance(mesh, str) else mesh

    transform_meshes(module, inline)
    symbols = Symbols(module)
    for mesh in operations_at_top(module):
        if isinstance(mesh, MeshOp):
            symbols.erase(mesh)
