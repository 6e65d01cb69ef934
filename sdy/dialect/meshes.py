"""The meshes of a module."""

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.diagnostics import op_error
from sdy.dialect.axis_syntax import symbol_text
from sdy.dialect.ops import MeshOp
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


def enclosing_module(op: Operation) -> ModuleOp | None:
    """The innermost module that `op` is in, or is."""
    current: Operation | None = op
    # Operations' classes are abstract ones, with which isinstance is slow to say no.
    while current is not None:
        if type(current) is ModuleOp:
            return current
        current = current.parent_op()
    return None


def named_meshes(module: ModuleOp) -> dict[str, Mesh]:
    """The meshes of `module` by their symbol, in the order of the text."""
    return {op.sym_name.data: op.mesh.data for op in operations_at_top(module) if isinstance(op, MeshOp)}


def main_mesh(module: ModuleOp) -> Mesh:
    """The mesh of all devices that `module` is a program for: the first that has axes; an empty one without any."""
    return next((mesh for mesh in named_meshes(module).values() if mesh.axes), Mesh())


def device_count(module: ModuleOp) -> int:
    """The number of devices that `module` is a program for."""
    return main_mesh(module).size


def find_mesh(sharding: TensorSharding, anchor: Operation) -> Mesh | None:
    """The mesh of `sharding`, its symbol looked up in the module around `anchor`; None where there is no such mesh."""
    if isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    module = enclosing_module(anchor)
    # Asked for every sharding of every operation, and answered by one of the first operations of the module.
    op = None if module is None else module.body.block.first_op
    while op is not None:
        if isinstance(op, MeshOp) and op.sym_name.data == sharding.mesh:
            return op.mesh.data
        op = op.next_op
    return None


def mesh_of(sharding: TensorSharding, anchor: Operation) -> Mesh:
    """The mesh of `sharding`, its symbol looked up in the module around `anchor`.

    Raises:
        DiagnosticError: the module has no mesh of that name.
    """
    mesh = find_mesh(sharding, anchor)
    if mesh is None:
        assert isinstance(sharding.mesh, str)
        raise op_error(anchor, f"unknown mesh: {symbol_text(sharding.mesh)}")
    return mesh


def common_mesh(shardings: Iterable[TensorSharding | None], anchor: Operation) -> Mesh | None:
    """The one mesh that all `shardings` are on, empty meshes aside; None where they are on different ones."""
    common: Mesh | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        mesh = mesh_of(sharding, anchor)
        if common is None or common.is_empty:
            common = mesh
        elif not mesh.is_empty and mesh != common:
            return None
    return common
