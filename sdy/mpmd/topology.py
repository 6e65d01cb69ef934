"""Functions, meshes and callees of an MPMD program."""

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.dialect.meshes import enclosing_module
from sdy.ir.walking import operations_at_top
from sdy.mesh import Mesh
from sdy.mpmd.attribute_syntax import NamedMesh
from sdy.mpmd.attributes import MESH_SHAPE, TOPOLOGY, TopologyAttr
from sdy.mpmd.ops import CallOp, FragmentCallOp


def enclosing_function(op: Operation) -> FuncOp:
    """Return the function that contains `op`."""
    current: Operation | None = op
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    assert current is not None, "MPMD operations are in functions"
    return current


def is_mpmd_function(function: FuncOp) -> bool:
    """Return whether `function` has a topology."""
    return TOPOLOGY in function.attributes


def is_entry_point(function: FuncOp) -> bool:
    """Return whether `function` is a public function with a topology or a mesh."""
    visibility = function.sym_visibility
    is_public = visibility is None or visibility.data == "public"
    return is_public and not {TOPOLOGY, MESH_SHAPE}.isdisjoint(function.attributes)


def topology_of(function: FuncOp) -> tuple[NamedMesh, ...]:
    """Return the meshes of an MPMD function; none without a topology."""
    topology = function.attributes.get(TOPOLOGY)
    return topology.data if isinstance(topology, TopologyAttr) else ()


def mesh_named(op: Operation, name: str) -> Mesh:
    """Return the mesh `name` of the topology around `op`.

    Raises:
        DiagnosticError: The function of `op` has no topology, or none with that mesh.
    """
    function = enclosing_function(op)
    if not is_mpmd_function(function):
        raise error(op, f"Function does not have a {TOPOLOGY} attribute: {function.sym_name.data}")
    for named in topology_of(function):
        if named.name == name:
            return named.mesh
    raise error(op, f"Topology doesn't have a mesh with name: {name}")


def callee_of(op: FragmentCallOp | CallOp) -> FuncOp | None:
    """Return the function that `op` calls, None if there is no such function."""
    name = op.callee.string_value()
    module = cast(ModuleOp, enclosing_module(op))
    functions = (each for each in operations_at_top(module) if isinstance(each, FuncOp))
    return next((function for function in functions if function.sym_name.data == name), None)
