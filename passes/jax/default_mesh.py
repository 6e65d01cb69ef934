"""The mesh of a module that says none."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.mesh import Mesh
from sdy.passes.driver import run_passes
from sdy.passes.jax.device_mesh import AnyMesh


def name_mesh(module: ModuleOp, mesh: AnyMesh) -> None:
    """Let `module` say that its mesh is `mesh` if it says none, which it does where nothing in it is sharded.

    Nor does it where jax lowers for GSPMD, as with `jax_use_shardy_partitioner` off: its shardings are brought onto it.
    """
    if not any(named.axes for named in named_meshes(module).values()):
        Rewriter.insert_op(MeshOp("mesh", Mesh.of(dict(mesh.shape))), InsertPoint.at_start(module.body.block))
        # Not loaded where a mesh is named, which nearly all programs do.
        from sdy.passes.importing.import_gspmd import ImportGspmdPass, has_gspmd_shardings

        if has_gspmd_shardings(module):
            run_passes(module, [ImportGspmdPass()])
