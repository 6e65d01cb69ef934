"""`sdy-inline-meshes`: write each mesh into the shardings that use it."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import MeshOp
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding


class InlineMeshesPass(ModulePass):
    """Replace references to meshes in shardings by the meshes themselves, and remove the `sdy.mesh` operations.

    Before::

        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) ...

    After::

        func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) ...
    """

    name = "sdy-inline-meshes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        def inline(sharding: TensorSharding) -> TensorSharding:
            return replace(sharding, mesh=mesh_of(sharding, op))

        transform_shardings(op, inline)
        symbols = Symbols(op)
        for mesh in list(op.ops):
            if isinstance(mesh, MeshOp):
                symbols.erase(mesh)
