"""Programs before propagation, and trials of suggested fixes on copies of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import DiagnosticError, capture
from sdy.dialect.meshes import main_mesh
from sdy.foreign_dialects import adopt
from sdy.formatting import escape_line, format_bytes, format_seconds
from sdy.ir.companions import clone
from sdy.ir.walking import operations
from sdy.passes.account.lint.bounds import least_compute
from sdy.passes.account.lint.constraint_helpers import at_call_lines
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.failures import Failures
from sdy.passes.account.partitioned_program import propagated_program
from sdy.passes.common.call_graph import calls_in, main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.properties import value_bytes
from sdy.passes.driver import run_passes
from sdy.passes.importing.remove_size_one_axes import RemoveSizeOneAxesPass
from sdy.passes.layouts import PropagatedLayout, cheapest, is_propagated, propagated_layouts
from sdy.passes.policy import Policy
from sdy.passes.propagation.provenance.history import history_of
from sdy.passes.spmd.costs.footprint import Footprint
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.host_memory import host_values
from sdy.passes.spmd.costs.step_time import StepTimes

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
        written = replace(written, is_as_linted=True)
        layouts = written.layouts()
    else:
        layouts = linted_layouts(program)
    return layouts, written and written.as_tried(layouts)


def linted_layouts(program: "ModuleOp | LoweredProgram") -> Sequence[PropagatedLayout]:
    """Return the propagated layouts of a program, the constraints of helper functions at the lines that call them."""
    return [replace(each, module=at_call_lines(each.module)) for each in propagated_program(program)]


HARDWARE = "h100"
"""The preset for which times are predicted without hardware: the order of layouts differs little between devices."""


@lru_cache(maxsize=1)
def default_hardware() -> Hardware:
    """Return the hardware `HARDWARE`."""
    return hardware_of(HARDWARE)


@dataclass(frozen=True, eq=False)
class WrittenProgram:
    """A program before propagation, with the options of its propagation."""

    _prepare: Callable[[], ModuleOp]
    policy: Policy | None = None
    compare: bool = True
    differs_in_hlo: bool = False
    """True if the HLO form gets other shardings: fixes are then tried in both forms, as the costs are of the better."""
    is_as_linted: bool = False
    """True if the linted layouts are those of `layouts`, rather than of a module with calls, or of a program that JAX
    has lowered, whose callbacks and memory limit trials ignore."""

    @classmethod
    def of(cls, program: "ModuleOp | LoweredProgram") -> "WrittenProgram | None":
        """Return a program before propagation; None for a module that is propagated already."""
        if not isinstance(program, ModuleOp):
            module, policy, compare = program.before_propagation()
            return cls(lambda: at_call_lines(module), policy, compare)
        return None if is_propagated(program) else cls(partial(_inlined, program), is_as_linted=not calls_in(program))

    @cached_property
    def module(self) -> ModuleOp:
        """The program with its calls inlined, made at the first trial: a large program has none.

        Its shardings have no axes of size 1, as those of the linted program.
        """
        module = self._prepare()
        run_passes(module, [RemoveSizeOneAxesPass()])
        return module

    def layouts(self, compare: bool = True) -> list[PropagatedLayout]:
        """Propagate a copy; without `compare`, only the program as written, in half the time.

        Raises:
            DiagnosticError: The program cannot be propagated.
        """
        return propagated_layouts(clone(self.module), self.policy, compare and self.compare)

    def as_tried(self, layouts: Sequence[PropagatedLayout]) -> "WrittenProgram":
        """Return the program, whose fixes are tried in both forms if its layouts are of both or the better one is."""
        is_compared = len(layouts) > 1 or history_of(layouts[0].module).choice is not None
        return replace(self, _prepare=lambda: self.module, differs_in_hlo=is_compared)

    def with_cure(self, cure: Cure) -> "WrittenProgram | None":
        """Return a copy with the edits of `cure`; None if the program lacks one of their targets."""
        module = clone(self.module)
        return replace(self, _prepare=lambda: module, is_as_linted=True) if cure.apply(module) else None

    def layouts_of_trial(self) -> list[PropagatedLayout]:
        """Propagate a copy in the forms in which fixes are tried.

        Raises:
            DiagnosticError: The program cannot be propagated.
        """
        return self.layouts(self.differs_in_hlo)

    @cached_property
    def size(self) -> int:
        """The number of operations."""
        return len(operations(self.module))


def _inlined(program: ModuleOp) -> ModuleOp:
    module = clone(program)
    adopt(module)
    inline_calls(module)
    return at_call_lines(module)


_MOST_GROWTH = 2.0
"""The largest quotient of bytes received after and before a fix that is compared."""


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
    hardware: str = HARDWARE
    """The name of the hardware."""

    @classmethod
    def of(cls, times: StepTimes, memory: Footprint | None = None) -> "Costs":
        """Return the costs of a partitioned module from its times; `memory` is its footprint if it is known."""
        cost, host = times.cost(memory), host_values(times.local)
        arguments = sum(value_bytes(each) for each in main_function(times.local).args if each not in host)
        name = HARDWARE if times.hardware == default_hardware() else times.hardware.name
        return cls(cost.received, cost.memory, cost.compute, cost.seconds, arguments, name)

    def relative(self, step: "Costs") -> float:
        """Return the order of preference: the time, half the bytes and a quarter of the memory of `step`, rounded.

        Of many more bytes than those of `step`, which may be few, only the time counts.
        """
        parts = (
            self.seconds / max(step.seconds, 1e-12),
            min(self.received / max(step.received, 1), _MOST_GROWTH) / 2,
            self.memory / max(step.memory, 1) / 4,
        )
        return round(sum(parts), 2)

    def compared(self, before: "Costs") -> str:
        """Format the costs beside those of another layout."""
        seconds = _change(before.seconds, self.seconds, format_seconds)
        changes = [
            f"receives {_change(before.received, self.received, format_bytes)}",
            f"needs {_change(before.memory, self.memory, format_bytes)} of memory",
            f"takes {seconds} (predicted for {escape_line(self.hardware)})",
        ]
        if before.arguments - self.arguments > max(before.memory - self.memory, 0):
            changes.insert(2, f"holds {_change(before.arguments, self.arguments, format_bytes)} in arguments")
        return f"with it, a device {', '.join(changes[:-1])} and {changes[-1]}"


def _change(before: float, after: float, form: Callable[[float], str]) -> str:
    old, new = form(before), form(after)
    return f"as before {new}" if old == new else f"{new} instead of {old}"


_MOST_OPERATIONS = 40_000
_FEWEST, _MOST = 6, 32
"""The number of trials: few enough to partition `_MOST_OPERATIONS` operations, between these two."""

_UNKNOWN = Footprint((), (), (), 0)
"""The footprint in place of one that is not computed."""


@dataclass(frozen=True)
class LeastCosts:
    """Lower bounds of the costs of a program with a fix, at which its trial may end."""

    bounds: Costs
    """The bounds with any layout."""
    can_help: Callable[[Costs], bool]
    """Returns whether a fix can help whose costs are at least these."""
    is_of_time: bool
    """True if the fix has to save time: a propagated layout has a better lower bound of it."""


class Trials:
    """Propagates and partitions programs with suggested fixes, within a budget."""

    @classmethod
    def of(cls, program: WrittenProgram | None, hardware: Hardware) -> "Trials":
        """Return the trials of a program; fewer of a larger one."""
        return cls(min(max(_MOST_OPERATIONS // program.size, _FEWEST), _MOST) if program else 0, hardware)

    def __init__(self, left: int, hardware: Hardware) -> None:
        self._hardware = hardware
        self.left = left
        """The number of fixes that may still be tried."""
        self.is_empty = not left
        """True if no fix may be tried."""
        self.skipped = 0
        """The number of fixes that were not tried."""
        self.failures = Failures()
        """The rules and trials that failed."""
        self._known: dict[tuple[WrittenProgram, Cure], Costs | None] = {}
        self._ended: set[tuple[WrittenProgram, Cure]] = set()
        """The fixes whose trials ended early."""

    def costs(self, program: WrittenProgram, cure: Cure, least: "LeastCosts | None" = None) -> Costs | None:
        """Return the costs of `program` with `cure`.

        Args:
            program: The program.
            cure: The fix.
            least: Ends the trial early where lower bounds of the costs say that the fix cannot help.

        Returns:
            The costs; None if the program cannot be propagated, the trial ended early, or there was none.
        """
        key = program, cure
        if key in self._known:
            return self._known[key]
        if key in self._ended:
            self._ended.remove(key)
        elif self.left:
            self.left -= 1
        else:
            self.skipped += 1
            return None
        costs = self._costs(program, cure, least)
        if key not in self._ended:
            self._known[key] = costs
        return costs

    def unchanged(self, program: WrittenProgram) -> Costs | None:
        """Return the costs of `program` without a fix, as those of fixes are predicted; None if no fix may be tried."""
        if self.is_empty:
            return None
        key = program, Cure(())
        if key not in self._known:
            self._known[key] = self._costs(*key)
        return self._known[key]

    def known(self, program: WrittenProgram, cure: Cure) -> Costs | None:
        """Return the costs of `program` with `cure` if it was tried."""
        key = program, cure
        return self.costs(program, cure) if key in self._ended else self._known.get(key)

    def _costs(self, program: WrittenProgram, cure: Cure, least: "LeastCosts | None" = None) -> Costs | None:
        if least and not least.can_help(least.bounds):
            return self._end_early(program, cure)
        try:
            with capture():
                cured = program.with_cure(cure)
                if cured is None:
                    return None
                layouts = cured.layouts_of_trial()
                if least and least.is_of_time:
                    seconds = min(least_compute(each.module, self._hardware) for each in layouts)
                    if not least.can_help(replace(least.bounds, compute=seconds, seconds=seconds)):
                        return self._end_early(program, cure)
                local = cheapest(layouts).local
                times = StepTimes(local, main_mesh(local), self._hardware)
                if least and not least.can_help(replace(Costs.of(times, _UNKNOWN), memory=least.bounds.memory)):
                    return self._end_early(program, cure)
                return Costs.of(times)
        except DiagnosticError:
            return None
        except Exception as problem:
            self.failures.add_fix(cure.text or "change nothing", problem)
            return None

    def _end_early(self, program: WrittenProgram, cure: Cure) -> None:
        self._ended.add((program, cure))
