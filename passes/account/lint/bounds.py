"""Lower bounds of the costs of a step with other layouts, for fixes that need not be tried."""

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.dialect.meshes import find_mesh, main_mesh
from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.companions import clone_alone
from sdy.ir.editing import replace
from sdy.ir.walking import operations_of
from sdy.passes.common.loops import loop_trips
from sdy.passes.spmd.costs.arithmetic import arithmetic_of
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import compute_times
from sdy.stablehlo.control_flow import WhileOp


def least_memory(module: ModuleOp, hardware: Hardware) -> int:
    """Return the memory in bytes of a program each of whose values is sharded evenly over all devices.

    Copies for other orders of dimensions do not count, as they depend on the layout.
    """
    return peak_bytes(_without_reshards(module), hardware.backend, copies=False) // main_mesh(module).size


def least_compute(module: ModuleOp, hardware: Hardware, *, any_layout: bool = False) -> float:
    """Return a lower bound of the computation of a step in seconds.

    Args:
        module: A propagated program.
        hardware: The hardware.
        any_layout: Whether each operation is sharded over all devices, rather than over the axes that its operands and
            its results have.
    """
    module = _without_reshards(module)
    size = main_mesh(module).size
    least = 0.0
    for op, seconds in compute_times(module, hardware):
        if not isinstance(op, ManualComputationOp):
            overhead = hardware.overhead * _trips(op) if arithmetic_of(op).operations else 0.0
            least += overhead + (seconds - overhead) / (size if any_layout else _parts(op))
    return least


def _trips(op: Operation) -> int:
    """Return the number of executions of an operation in a step; 1 for each loop of unknown length."""
    parent = op.parent_op()
    if parent is None:
        return 1
    return _trips(parent) * ((isinstance(parent, WhileOp) and loop_trips(parent)) or 1)


def _without_reshards(module: ModuleOp) -> ModuleOp:
    """Return a copy without reshards, which separate operations that are fused where they move nothing."""
    copy = clone_alone(module)
    for op in operations_of(copy, ReshardOp):
        replace(op, [op.input])
    return copy


def _parts(op: Operation) -> int:
    """Return the size of the axes that the operands or the results of an operation have."""
    return prod(dict(_axes(op)).values())


def _axes(op: Operation) -> Iterator[tuple[str, int]]:
    """Yield the name and the size of the axes."""
    for value in (*op.operands, *op.results):
        sharding = get_sharding(value)
        mesh = sharding and find_mesh(sharding, op)
        if sharding and mesh:
            yield from ((axis.name, mesh.axis_size(axis.name)) for axis in sharding.axes())
