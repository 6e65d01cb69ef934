"""What the automatic partitioner chose: the layout, what it costs, and what else there was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sdy.byte_sizes import shown_bytes
from sdy.mesh import Mesh
from sdy.passes.common.columns import columns
from sdy.passes.common.shown_seconds import shown_seconds
from sdy.passes.common.shown_sharding import dims_of
from sdy.passes.spmd.costs.hardware import Hardware
from sdy.passes.spmd.costs.step_time import AxisNames, StepCost
from sdy.sharding import TensorSharding
from sdy.shown_text import shown

_COUNTS = 1e-6
"""Of the time of a step, what is no difference."""


@dataclass(frozen=True)
class Row:
    """Arguments that are equal, as those of the layers of a model are, and their sharding."""

    arguments: tuple[int, ...]
    names: tuple[str, ...]
    type: str
    sharding: TensorSharding | None
    runner_up: TensorSharding | None = None
    """The next best option, None where the choice was given, or there is no other."""
    more_seconds: float | None = None
    """How many more a step was estimated to take with it."""


@dataclass(frozen=True, repr=False)
class Plan:
    """A layout of a program's arguments, which the module now has; as text, tables."""

    mesh: Mesh
    hardware: Hardware
    memory: int
    """The bytes that a device may use."""
    rows: Sequence[Row]
    cost: StepCost
    """As predicted of the program that each device runs."""
    found_from: str
    """Where the search for it began."""
    largest: Sequence[str]
    """What takes most memory when most of it is taken, in words, the most first."""
    others: Mapping[str, StepCost]
    """What other layouts would cost, by name: as predicted of what each device runs where one of the best, or else as
    estimated."""
    least_seconds: float
    """No layout is faster than this, as far as costs are predicted rightly."""
    estimated: int
    """How many layouts were compared."""

    @property
    def fits(self) -> bool:
        """Whether the program needs no more memory than it may use."""
        return self.cost.memory <= self.memory

    def __str__(self) -> str:
        return "\n\n".join([self._summary(), *([self._arguments()] if self.rows else []), self._comparison()])

    __repr__ = __str__

    def _summary(self) -> str:
        ratio = self.cost.seconds / self.least_seconds if self.least_seconds else 1.0
        fits = "" if self.fits else ", which is MORE THAN THERE IS: no layout was found that needs less"
        return "\n".join(
            [
                f"  mesh          {shown_mesh(self.mesh)}",
                f"  hardware      {shown(self.hardware.name)}",
                f"  step          {shown_seconds(self.cost.seconds)}, at most {ratio:.2f} times the least there can be "
                f"({shown_seconds(self.least_seconds)})",
                f"  memory        {shown_bytes(self.cost.memory)} of {shown_bytes(self.memory)}{fits}",
                *(f"  {'':14}{shown(each)}" for each in self.largest),
                f"  found from    {self.found_from}, of {self.estimated:,} layouts",
            ]
        )

    def _arguments(self) -> str:
        table = [["arguments", "type", "sharding", "otherwise", ""]]
        for row in self.rows:
            more = row.more_seconds
            table.append(
                [
                    _names(row),
                    shown(row.type),
                    dims_of(row.sharding),
                    "" if more is None else dims_of(row.runner_up),
                    "" if more is None else self._shown_more(more),
                ]
            )
        return "\n".join(columns(table))

    def _shown_more(self, seconds: float) -> str:
        return f"+{shown_seconds(seconds)}" if seconds > _COUNTS * self.cost.seconds else "as fast"

    def _comparison(self) -> str:
        axes = list(dict.fromkeys(axes for cost in (self.cost, *self.others.values()) for axes in cost.communication))
        table = [["layout", "step", "compute", *map(_axes, axes), "memory"]]
        for name, cost in {"this plan": self.cost, **self.others}.items():
            sent = [shown_seconds(cost.communication.get(each, 0.0)) for each in axes]
            table.append(
                [name, shown_seconds(cost.seconds), shown_seconds(cost.compute), *sent, shown_bytes(cost.memory)]
            )
        return "\n".join(columns(table, numbers=range(1, len(table[0]))))


def shown_mesh(mesh: Mesh) -> str:
    """The axes of a mesh, as `data=4, model=2`."""
    return ", ".join(f"{shown(name)}={size}" for name, size in mesh.axes)


def _names(row: Row) -> str:
    first = shown(row.names[0])
    return first if len(row.names) == 1 else f"{first} and {len(row.names) - 1} like it"


def _axes(axes: AxisNames) -> str:
    return "over " + ", ".join(map(shown, axes))
