"""Result of the automatic partitioner: the chosen shardings, their predicted cost, and the alternatives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.axis_syntax import format_dims
from sdy.formatting import columns, escape_line, format_bytes, format_seconds
from sdy.mesh import Mesh
from sdy.passes.auto.front_chart import front_svg
from sdy.passes.auto.limits import Limit
from sdy.passes.auto.truth import Recomputation
from sdy.passes.auto.what_if import Alternatives, ShardingSpec, WhatIf
from sdy.passes.common.immutable import Immutable
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.network import AxisNames
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.sharding import TensorSharding

_NEGLIGIBLE = 1e-6
"""Time differences below this fraction of a step are not shown."""

_MOST_LAYOUTS = 10
"""Maximum number of other layouts that the text of a plan shows, the best ones."""

_MOST_RECOMPUTED = 5
"""Maximum number of groups of recomputed values, and of offloaded ones, that the text of a plan shows: the largest."""

_LIMITS: Mapping[Limit, str] = {
    "budget": "its budget of work",
    "time limit": "the time limit",
    "interrupt": "an interrupt",
}


class Difference(NamedTuple):
    """Difference of two costs of a step on each device."""

    seconds: float
    received: float
    """Bytes that a device receives."""
    memory: int
    """Bytes of memory."""


@dataclass(frozen=True)
class Row:
    """Equal arguments or results, such as those of the layers of a model, and their sharding."""

    arguments: tuple[int, ...]
    """The indices of the arguments; empty for results of operations."""
    names: tuple[str, ...]
    type: str
    sharding: TensorSharding | None
    runner_up: TensorSharding | None = None
    """The next best sharding, or None if there was no alternative."""
    more: Difference | None = None
    """The estimated cost that the runner-up would add."""

    @property
    def more_seconds(self) -> float | None:
        """The estimated additional seconds of a step with the runner-up."""
        return None if self.more is None else self.more.seconds


class Measured(Protocol):
    """The costs of a compiled program, such as `sdy.account(step, ...).compiled`."""

    @property
    def bytes_received(self) -> float:
        """The bytes that a device receives in a run."""
        ...

    @property
    def memory(self) -> int | None:
        """The peak memory per device in bytes, or None if it is unknown."""
        ...


@dataclass(frozen=True, repr=False)
class Comparison:
    """Predicted and measured costs of a step on each device; `str` formats them side by side."""

    predicted: StepCost
    received: float
    """The bytes that a device receives in the compiled program."""
    memory: int | None
    """The peak memory of the compiled program in bytes, or None if the compiler does not report it."""
    seconds: float | None
    """The measured seconds of a step, or None if it was not run."""

    def __str__(self) -> str:
        cost = self.predicted
        rows = [["", "predicted", "measured", "predicted / measured"]]
        for name, predicted, measured, form in (
            ("step time", cost.seconds, self.seconds, format_seconds),
            ("received", cost.received, self.received, format_bytes),
            ("memory", cost.memory, self.memory, format_bytes),
        ):
            ratio = f"{predicted / measured:.2f}" if measured else ""
            rows.append([name, form(predicted), "" if measured is None else form(measured), ratio])
        return "\n".join(columns(rows, numbers=range(1, 4)))

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Plan(Immutable):
    """Shardings chosen by `sdy.auto`, which the module now has; `str` formats them as tables."""

    mesh: Mesh
    hardware: Hardware
    memory: int
    """The bytes that a device may use."""
    rows: Sequence[Row]
    """The chosen shardings."""
    cost: StepCost
    """The predicted cost of a step of the partitioned program."""
    found_from: str
    """The name of the layout that the search started from."""
    largest: Sequence[str]
    """Descriptions of the largest values that are live at peak memory, in decreasing order of bytes."""
    others: Mapping[str, StepCost]
    """The costs of expert layouts by name: predicted from the partitioned program for the best ones, or else
    estimated."""
    least_seconds: float
    """A lower bound of the predicted step time of all layouts."""
    estimated: int
    """The number of layouts that the search estimated."""
    limit_reached: Limit | None = None
    """The limit that ended the search, or None if it converged."""
    front: Sequence[StepCost] = ()
    """The estimated costs of the layouts that no other estimated layout beats in both time and memory."""
    alternatives: Alternatives | None = field(default=None, repr=False, compare=False)
    """The layouts near this one; None in other processes than the one that searched."""
    module: ModuleOp | None = field(default=None, repr=False, compare=False)
    """A copy of the program with the chosen shardings; None in other processes than the one that searched."""

    recomputation: Recomputation | None = None
    """The values that a step recomputes or offloads to the host so that it fits into memory; None if it does not."""

    microbatches: Mapping[int, StepCost] = field(default_factory=dict[int, StepCost])
    """The predicted costs with the numbers of microbatches that `sdy.accumulate(microbatches=sdy.AUTO)` may have; this
    plan's cost is one of them."""

    @property
    def fits(self) -> bool:
        """True if the program needs no more memory than a device may use."""
        return self.cost.memory <= self.memory

    def pareto(self) -> Sequence[StepCost]:
        """Return the Pareto front of step time against memory, the fastest first.

        The points are this plan, whose cost is predicted from its partitioned program, and the layouts that the search
        estimated: no new search runs. Of two points, the faster one needs more memory.
        """
        points: list[StepCost] = []
        for cost in sorted([self.cost, *self.front], key=lambda each: (each.seconds, each.memory)):
            if not points or cost.memory < points[-1].memory:
                points.append(cost)
        return points

    def pareto_svg(self) -> str:
        """Return a picture of `pareto()` as an SVG document, with this plan in red if it is on the front."""
        return front_svg(self.pareto(), self.cost, self.memory)

    def with_(self, shardings: Mapping[str, ShardingSpec]) -> WhatIf:
        """Return what a step would cost with other shardings of some arguments; the module does not change.

            print(plan.with_({"params['w']": ("data", None)}))

        The search knows the cost or estimates it in milliseconds. Arguments that share a row, such as those of the
        layers of a model, change together.

        Args:
            shardings: For the names of arguments, as in `rows`, shardings such as `("data", None)` or a
                `PartitionSpec`. Missing dimensions are replicated.

        Raises:
            ValueError: An argument is unknown or cannot have the sharding.
            RuntimeError: Another process made the plan.
        """
        if self.alternatives is None:
            raise RuntimeError("another process made the plan: only that process knows the costs of other layouts")
        return self.alternatives.what_if(shardings)

    def specs(self) -> Any:
        """Return the shardings as `sdy.Specs`: trees of `PartitionSpec`s, which a Python file applies without sdy.

            print(plan.specs().to_python())

        Raises:
            RuntimeError: Another process made the plan.
        """
        if self.module is None:
            raise RuntimeError("another process made the plan: only that process has the program")
        # Imported on use: planning does not import JAX.
        return import_module("sdy.passes.python_layouts.specs").specs(self.module)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "module": None}

    def compare(self, compiled: Measured, seconds: float | None = None) -> Comparison:
        """Return the predicted costs of a step beside those of the compiled program.

            print(plan.compare(sdy.account(train, params, batch).compiled))

        Args:
            compiled: The compiled program's bytes received and memory.
            seconds: The measured seconds of a step.
        """
        return Comparison(self.cost, compiled.bytes_received, compiled.memory, seconds)

    def __str__(self) -> str:
        return "\n\n".join([self._summary(), *([self._arguments()] if self.rows else []), self._comparison()])

    __repr__ = __str__

    def _summary(self) -> str:
        ratio = self.cost.seconds / self.least_seconds if self.least_seconds else 1.0
        limit, recomputed = self.limit_reached, self.recomputation
        recomputed_values, offloaded = (recomputed.values, recomputed.offloaded) if recomputed else ((), ())
        fits = "" if self.fits else ", which is TOO MUCH: no layout that needs less was found"
        return "\n".join(
            [
                f"  mesh          {shown_mesh(self.mesh)}",
                f"  hardware      {escape_line(self.hardware.name)}",
                f"  step time     {format_seconds(self.cost.seconds)} (predicted), within {ratio:.2f} times the lower "
                f"bound of {format_seconds(self.least_seconds)}",
                f"  memory        {format_bytes(self.cost.memory)} of {format_bytes(self.memory)}{fits}",
                *(f"  {'':14}{escape_line(each)}" for each in self.largest),
                *([f"  recomputed    {recomputed}"] if recomputed else []),
                *(f"  {'':14}{escape_line(str(each))}" for each in recomputed_values[:_MOST_RECOMPUTED]),
                *(f"  {'':14}offloaded: {escape_line(str(each))}" for each in offloaded[:_MOST_RECOMPUTED]),
                *([f"  microbatches  {self._microbatches()}"] if self.microbatches else []),
                *([f"  on the host   {format_bytes(self.cost.host_memory)}"] if self.cost.host_memory else []),
                f"  search        {self.estimated:,} layouts estimated; best start: {self.found_from}",
                *([f"  {'':14}stopped by {_LIMITS[limit]}: a longer search may find more"] if limit else []),
            ]
        )

    def _microbatches(self) -> str:
        """Format the numbers of microbatches, the chosen one first."""
        costs = sorted(self.microbatches.items(), key=lambda each: each[1] != self.cost)
        shown = [f"{number}: {format_seconds(cost.seconds)} in {format_bytes(cost.memory)}" for number, cost in costs]
        return f"{costs[0][0]} ({', '.join(shown)})"

    def _arguments(self) -> str:
        table = [["arguments", "type", "sharding", "runner-up", "time", "received", "memory"]]
        for row in self.rows:
            runner_up = [""] * 4
            if row.more is not None:
                seconds, *bytes_ = row.more
                runner_up = [format_dims(row.runner_up), self._shown_more(seconds), *map(_format_difference, bytes_)]
            table.append([_names(row), escape_line(row.type), format_dims(row.sharding), *runner_up])
        return "\n".join(columns(table))

    def _shown_more(self, seconds: float) -> str:
        return f"+{format_seconds(seconds)}" if seconds > _NEGLIGIBLE * self.cost.seconds else "as fast"

    def _comparison(self) -> str:
        fastest = sorted(self.others.items(), key=lambda each: (each[1].memory > self.memory, each[1].seconds))
        shown = {"this plan": self.cost, **dict(fastest[:_MOST_LAYOUTS])}
        axes = list(dict.fromkeys(axes for cost in shown.values() for axes in cost.communication))
        table = [["layout", "step time", "compute", *map(_axes, axes), "overlap", "memory"]]
        for name, cost in shown.items():
            sent = [format_seconds(cost.communication.get(each, 0.0)) for each in axes]
            table.append(
                [
                    name,
                    *map(format_seconds, (cost.seconds, cost.compute)),
                    *sent,
                    format_seconds(cost.overlap),
                    format_bytes(cost.memory),
                ]
            )
        table_text = "\n".join(columns(table, numbers=range(1, len(table[0]))))
        slower = len(self.others) - len(shown) + 1
        return f"{table_text}\n  and {slower} other layouts" if slower > 0 else table_text


def shown_mesh(mesh: Mesh) -> str:
    """Format the axes of a mesh as `data=4, model=2`."""
    return ", ".join(f"{escape_line(name)}={size}" for name, size in mesh.axes)


def _format_difference(bytes_: float) -> str:
    """Format a difference of bytes as `+1.5 MiB` or `-4 KiB`, or `as many` without one."""
    if round(bytes_) == 0:
        return "as many"
    return f"{'+' if bytes_ > 0 else '-'}{format_bytes(abs(bytes_))}"


def _names(row: Row) -> str:
    first = escape_line(row.names[0])
    return first if len(row.names) == 1 else f"{first} and {len(row.names) - 1} like it"


def _axes(axes: AxisNames) -> str:
    return "over " + ", ".join(map(escape_line, axes))
