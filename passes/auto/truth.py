"""Cost of a layout on the propagated and partitioned module, as opposed to its estimate on the folded program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import Diagnostic, capture
from sdy.dialect.meshes import named_meshes
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_sharding,
    get_sharding,
    set_func_arg_sharding,
    set_func_result_sharding,
    set_sharding,
)
from sdy.formatting import format_bytes, format_seconds
from sdy.ir.companions import clone, companion
from sdy.passes.auto.origins import choosable_results
from sdy.passes.auto.state import find_state
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import partition, propagate, run_passes
from sdy.passes.partitioning.rematerialize import RematerializePass
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import StepCost, StepTimes
from sdy.passes.spmd.remat.recomputed import Recomputed, ValueGroup, describe_values
from sdy.sharding import TensorSharding


@dataclass(frozen=True)
class LayoutOfModule:
    """Shardings that a layout writes into a module."""

    arguments: Mapping[int, TensorSharding]
    """The shardings of arguments of the main function, by index."""
    results: Mapping[int, TensorSharding] = field(default_factory=dict[int, TensorSharding])
    """The shardings of results of operations, by index in `choosable_results`."""

    @classmethod
    def of(cls, module: ModuleOp) -> "LayoutOfModule":
        """Return the shardings in `module`."""
        arguments, results = func_arg_shardings(main_function(module)), map(get_sharding, choosable_results(module))
        return cls(
            {index: sharding for index, sharding in enumerate(arguments) if sharding is not None},
            {number: sharding for number, sharding in enumerate(results) if sharding is not None},
        )

    def write(self, module: ModuleOp) -> None:
        """Write the shardings of arguments, of the next values of state arguments, and of operation results."""
        main = main_function(module)
        state = find_state(main)
        for index, sharding in self.arguments.items():
            set_func_arg_sharding(main, index, sharding)
            if index in state and func_result_sharding(main, state[index]) is None:
                set_func_result_sharding(main, state[index], sharding)
        results = choosable_results(module) if self.results else ()
        for number, sharding in self.results.items():
            set_sharding(results[number], sharding)


@dataclass(frozen=True)
class Recomputation:
    """The values that a program recomputes or offloads so that it fits into memory, with what that saves and costs."""

    values: Sequence[ValueGroup]
    """The values that are computed again, those with the most bytes first."""
    offloaded: Sequence[ValueGroup]
    """The values that are moved to the host and back, those with the most bytes first."""
    saved: Sequence[ValueGroup]
    """The values that the forward pass saves for the backward pass, those with the most bytes first."""
    saved_bytes: int
    """The bytes of memory that a device saves."""
    seconds: float
    """The predicted seconds that a step takes longer."""

    def __str__(self) -> str:
        is_changed = bool(self.values or self.offloaded)
        reordered = "none, but operations run in another order"
        values = describe_values(self.values, self.offloaded) if is_changed else reordered
        return f"{values}: {format_bytes(self.saved_bytes)} less memory, {format_seconds(self.seconds)} longer"


@dataclass(frozen=True)
class PartitionedCost:
    """Cost of a partitioned module, with the diagnostics of its propagation."""

    cost: StepCost
    reported: Sequence[Diagnostic]
    """The diagnostics that propagation reported."""
    recomputation: Recomputation | None = None
    """The values that are recomputed because of a memory limit; None if there are none."""


def truth_of(
    module: ModuleOp, layout: LayoutOfModule, mesh_name: str, hardware: Hardware, memory: int | None = None
) -> PartitionedCost:
    """Propagate and partition a copy of `module` with `layout`, and return the cost of a step.

    Args:
        module: The program.
        layout: The layout.
        mesh_name: The name of the mesh.
        hardware: The hardware.
        memory: The bytes that a device may use: values are recomputed until the program fits. By default, none are.
    """
    local = clone(module)
    layout.write(local)
    mesh = named_meshes(local)[mesh_name]
    with capture() as reported:
        propagate(local)
    with capture():
        partition(local)
    kept = StepTimes(local, mesh, hardware).cost()
    if memory is None or kept.memory <= memory:
        return PartitionedCost(kept, reported)
    with capture():
        run_passes(local, [RematerializePass(str(memory), hardware.source)])
    # Within a limit, XLA for CPUs is asked for the order of accelerators.
    cost = StepTimes(local, mesh, replace(hardware, backend=Backend.ACCELERATOR)).cost()
    recomputed = companion(local, Recomputed)
    saved_bytes, seconds = kept.memory - cost.memory, cost.seconds - kept.seconds
    summary = Recomputation(recomputed.values, recomputed.offloaded, recomputed.saved, saved_bytes, seconds)
    return PartitionedCost(cost, reported, summary)
