"""Programs before propagation, and trials of suggested fixes on copies of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.meshes import main_mesh
from sdy.foreign_dialects import adopt
from sdy.formatting import format_bytes, format_seconds
from sdy.ir.companions import clone
from sdy.ir.walking import operations
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.partitioned_program import propagated_program
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.properties import value_bytes
from sdy.passes.layouts import PropagatedLayout, cheapest, is_propagated, propagated_layouts
from sdy.passes.policy import Policy
from sdy.passes.spmd.costs.footprint import Footprint
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.step_time import StepCost, StepTimes

if TYPE_CHECKING:
    from sdy.passes.jax.stages import LoweredProgram


def written_program(
    program: "ModuleOp | LoweredProgram",
) -> "tuple[Sequence[PropagatedLayout], WrittenProgram | None]":
    """Return the propagated layouts of a program, and the program before propagation.

    The latter is None for a module that is propagated already.

    Raises:
        DiagnosticError: The program cannot be propagated.
    """
    written = WrittenProgram.of(program)
    if isinstance(program, ModuleOp) and written:
        return written.layouts(), written
    return propagated_program(program), written


HARDWARE = "h100"
"""The preset for which times are predicted: trials compare layouts, whose order differs little between devices."""


@dataclass(frozen=True)
class WrittenProgram:
    """A program before propagation, with the options of its propagation."""

    module: ModuleOp
    policy: Policy | None = None
    compare: bool = True

    @classmethod
    def of(cls, program: "ModuleOp | LoweredProgram") -> "WrittenProgram | None":
        """Return a program before propagation, with its calls inlined; None for a module that is propagated already."""
        if not isinstance(program, ModuleOp):
            return cls(*program.before_propagation())
        if is_propagated(program):
            return None
        module = clone(program)
        adopt(module)
        inline_calls(module)
        return cls(module)

    def layouts(self, compare: bool = True) -> list[PropagatedLayout]:
        """Propagate a copy; without `compare`, only the program as written, in half the time.

        Raises:
            DiagnosticError: The program cannot be propagated.
        """
        return propagated_layouts(clone(self.module), self.policy, compare and self.compare)

    def with_cure(self, cure: Cure) -> "WrittenProgram | None":
        """Return a copy with the edits of `cure`; None if the program lacks one of their targets."""
        module = clone(self.module)
        return WrittenProgram(module, self.policy, self.compare) if cure.apply(module) else None

    @cached_property
    def size(self) -> int:
        """The number of operations."""
        return len(operations(self.module))


@dataclass(frozen=True)
class Costs:
    """Predicted costs of a step on each device."""

    received: float
    """Bytes received."""
    memory: int
    """Peak memory in bytes."""
    compute: float
    """Seconds of computation."""
    seconds: float
    """The step time."""
    arguments: int = 0
    """Bytes of the arguments, which a device holds between steps too."""

    @classmethod
    def of(cls, local: ModuleOp, memory: Footprint | None = None) -> "Costs":
        """Predict the costs of a partitioned module; `memory` is its footprint if it is known."""
        cost: StepCost = StepTimes(local, main_mesh(local), _hardware()).cost(memory)
        host = host_values(local)
        arguments = sum(value_bytes(each) for each in main_function(local).args if each not in host)
        return cls(cost.received, cost.memory, cost.compute, cost.seconds, arguments)

    def relative(self, step: "Costs") -> float:
        """Return the order of preference: the time, half the bytes and a quarter of the memory of `step`, rounded."""
        parts = (
            self.seconds / max(step.seconds, 1e-12),
            self.received / max(step.received, 1) / 2,
            self.memory / max(step.memory, 1) / 4,
        )
        return round(sum(parts), 2)

    def compared(self, before: "Costs") -> str:
        """Format the costs beside those of another layout."""
        changes = [
            f"receives {_change(before.received, self.received, format_bytes)}",
            f"needs {_change(before.memory, self.memory, format_bytes)} of memory",
            f"takes {_change(before.seconds, self.seconds, format_seconds)} (predicted for {HARDWARE})",
        ]
        if self.arguments < before.arguments and self.memory >= before.memory:
            changes.insert(2, f"holds {_change(before.arguments, self.arguments, format_bytes)} in arguments")
        return f"with it, a device {', '.join(changes[:-1])} and {changes[-1]}"


def _change(before: float, after: float, form: Callable[[float], str]) -> str:
    old, new = form(before), form(after)
    return f"as before {new}" if old == new else f"{new} instead of {old}"


@lru_cache(maxsize=1)
def _hardware() -> Hardware:
    return hardware_of(HARDWARE)


_MOST_OPERATIONS = 40_000
_FEWEST, _MOST = 6, 32
"""The number of trials: few enough to partition `_MOST_OPERATIONS` operations, between these two."""


class Trials:
    """Propagates and partitions programs with suggested fixes, within a budget."""

    @classmethod
    def of(cls, program: WrittenProgram | None) -> "Trials":
        """Return the trials of a program; fewer of a larger one."""
        return cls(min(max(_MOST_OPERATIONS // program.size, _FEWEST), _MOST) if program else 0)

    def __init__(self, left: int) -> None:
        self.left = left
        """The number of fixes that may still be tried."""
        self.is_empty = not left
        """True if no fix may be tried."""
        self.skipped = 0
        """The number of fixes that were not tried."""
        self._known: dict[tuple[ModuleOp, Cure], Costs | None] = {}

    def costs(self, program: WrittenProgram, cure: Cure) -> Costs | None:
        """Return the costs of `program` with `cure`, propagated as written; None if it cannot be, or is not tried."""
        key = program.module, cure
        if key not in self._known:
            if not self.left:
                self.skipped += 1
                return None
            self.left -= 1
            self._known[key] = _costs(program, cure)
        return self._known[key]


def _costs(program: WrittenProgram, cure: Cure) -> Costs | None:
    try:
        with capture():
            cured = program.with_cure(cure)
            return cured and Costs.of(cheapest(cured.layouts(compare=False)).local)
    except DiagnosticError:
        return None
