"""The mesh of a module that says none."""

from jax.sharding import AbstractMesh
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.mesh import Mesh


def name_mesh(module: ModuleOp, mesh: AbstractMesh) -> None:
    """Let `module` say that its mesh is `mesh` if it says none, which it does where nothing in it is sharded."""
    if not any(named.axes for named in named_meshes(module).values()):
        Rewriter.insert_op(MeshOp("mesh", Mesh.of(dict(mesh.shape))), InsertPoint.at_start(module.body.block))
