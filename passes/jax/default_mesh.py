"""The mesh of a module that declares none."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.mesh import Mesh
from sdy.passes.driver import run_passes
from sdy.passes.jax.device_mesh import AnyMesh


def name_mesh(module: ModuleOp, mesh: AnyMesh) -> None:
    """Declare `mesh` in `module` unless it declares a mesh with axes.

    A module has no mesh if nothing in it is sharded, or if jax lowered it for GSPMD (`jax_use_shardy_partitioner` off).
    The GSPMD shardings of the latter are imported onto `mesh`.
    """
    if not any(named.axes for named in named_meshes(module).values()):
        Rewriter.insert_op(MeshOp("mesh", Mesh.of(dict(mesh.shape))), InsertPoint.at_start(module.body.block))
        # Imported here because nearly all programs declare a mesh and do not need it.
        from sdy.passes.importing.import_gspmd import ImportGspmdPass, has_gspmd_shardings

        if has_gspmd_shardings(module):
            run_passes(module, [ImportGspmdPass()])
