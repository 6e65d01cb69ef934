"""Meshes of a module: symbol look-up, the common mesh of shardings, and manual axes.

The body of `sdy.manual_computation ... manual_axes={"x"}` is a per-device program along "x": its values are shards
along "x", and no sharding in it may use "x", or a sub-axis of it, again.
"""

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.diagnostics import op_error
from sdy.dialect.axis_syntax import symbol_text
from sdy.dialect.ops import ManualComputationOp, MeshOp
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding


def enclosing_module(op: Operation) -> ModuleOp | None:
    """Return the innermost module that contains `op` or is `op`."""
    current: Operation | None = op
    # isinstance is slow for abstract classes, such as those of operations, when the answer is no.
    while current is not None:
        if type(current) is ModuleOp:
            return current
        current = current.parent_op()
    return None


def named_meshes(module: ModuleOp) -> dict[str, Mesh]:
    """Return the meshes of `module` by their symbol, in the order of the text."""
    return {op.sym_name.data: op.mesh.data for op in operations_at_top(module) if isinstance(op, MeshOp)}


def main_mesh(module: ModuleOp) -> Mesh:
    """Return the mesh of all devices of `module`, its first mesh with axes; an empty mesh if no mesh has axes."""
    return next((mesh for mesh in named_meshes(module).values() if mesh.axes), Mesh())


def device_count(module: ModuleOp) -> int:
    """Return the number of devices of the main mesh of `module`."""
    return main_mesh(module).size


def find_mesh(sharding: TensorSharding, anchor: Operation) -> Mesh | None:
    """Return the mesh of `sharding`, looked up by symbol in the module of `anchor`; None for an unknown symbol."""
    if isinstance(sharding.mesh, Mesh):
        return sharding.mesh
    module = enclosing_module(anchor)
    # Hot path, called for every sharding of every operation; meshes are among the first operations of a module.
    op = None if module is None else module.body.block.first_op
    while op is not None:
        if isinstance(op, MeshOp) and op.sym_name.data == sharding.mesh:
            return op.mesh.data
        op = op.next_op
    return None


def mesh_of(sharding: TensorSharding, anchor: Operation) -> Mesh:
    """Return the mesh of `sharding`, looked up by symbol in the module of `anchor`.

    Raises:
        DiagnosticError: The module has no mesh with that symbol.
    """
    mesh = find_mesh(sharding, anchor)
    if mesh is None:
        assert isinstance(sharding.mesh, str)
        raise op_error(anchor, f"unknown mesh: {symbol_text(sharding.mesh)}")
    return mesh


def common_mesh(shardings: Iterable[TensorSharding | None], anchor: Operation) -> Mesh | None:
    """Return the mesh shared by all `shardings`, ignoring empty meshes; None if their meshes differ."""
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


def manual_computations_around(op: Operation) -> Iterator[ManualComputationOp]:
    """Yield the manual computations whose bodies contain `op`, innermost first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ManualComputationOp):
            yield parent
        parent = parent.parent_op()


def manual_axes_around(op: Operation) -> dict[str, ManualComputationOp]:
    """Return the manual axes of the computations around `op`, with the computation of each."""
    return {axis: around for around in manual_computations_around(op) for axis in around.manual_axes.data}
