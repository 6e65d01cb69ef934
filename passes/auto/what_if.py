"""Another sharding for some arguments of a plan: its cost follows from the cost tables of the search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product

from sdy.formatting import columns, format_bytes, format_seconds
from sdy.passes.auto.choices import Choice
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.search import Candidate, Search
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.sharding import DimSpec, TensorSharding

ShardingSpec = Sequence[DimSpec]
"""User notation of a sharding, such as `(("data", "model"), None)` or a `PartitionSpec`; see `TensorSharding.of`."""


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The costs of a plan and of the plan with other shardings, both estimated; `str` formats them as a table."""

    plan: StepCost
    """The estimated cost of the plan. `Plan.cost` is that of the partitioned program instead."""
    changed: StepCost
    """The estimated cost with the other shardings."""
    memory: int
    """The bytes that a device may use."""

    @property
    def fits(self) -> bool:
        """True if the program with the other shardings needs no more memory than a device may use."""
        return self.changed.memory <= self.memory

    @property
    def more_seconds(self) -> float:
        """The additional seconds of a step."""
        return self.changed.seconds - self.plan.seconds

    def __str__(self) -> str:
        costs = {"this plan": self.plan, "changed": self.changed}
        rows = [
            [name, format_seconds(cost.seconds), format_bytes(cost.received), format_bytes(cost.memory)]
            for name, cost in costs.items()
        ]
        return "\n".join(columns([["estimated", "step time", "received", "memory"], *rows], numbers=range(1, 4)))

    __repr__ = __str__


class Alternatives:
    """The layouts near a plan, whose costs the search knows or estimates in milliseconds.

    A pickled plan has none, since it would carry the entire search.

    Args:
        search: The search.
        choices: The choices of arguments by the names of all of their arguments.
        best: The layout of the plan.
        mesh_name: The name of the mesh.
        memory: The bytes that a device may use.
        limits: The limits of the search, which do not apply here.
    """

    def __init__(
        self,
        search: Search,
        choices: Mapping[str, Choice],
        best: Candidate,
        mesh_name: str,
        memory: int,
        limits: Limits,
    ) -> None:
        self._search = search
        self._choices = choices
        self._best = best
        self._mesh_name = mesh_name
        self._memory = memory
        self._limits = limits

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()

    def what_if(self, shardings: Mapping[str, ShardingSpec]) -> WhatIf:
        """Return the estimated cost with other shardings of the arguments of these names.

        Raises:
            ValueError: An argument is unknown or has no such sharding.
        """
        options = {choice.node: self._options(name, choice, shardings[name]) for name, choice in self._of(shardings)}
        assignments = [dict(zip(options, chosen, strict=True)) for chosen in product(*options.values())]
        with self._limits.lifted():
            layouts = [{**self._best.assignment, **assignment} for assignment in assignments]
            changed = min((self._search.candidate(self._best.name, each) for each in layouts), key=self._search.rank)
        return WhatIf(self._best.cost, changed.cost, self._memory)

    def _of(self, shardings: Mapping[str, ShardingSpec]) -> list[tuple[str, Choice]]:
        for name in shardings:
            if name not in self._choices:
                near = get_close_matches(name, self._choices, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise ValueError(f"the plan chooses no sharding for '{name}'{hint}")
        return [(name, self._choices[name]) for name in shardings]

    def _options(self, name: str, choice: Choice, spec: ShardingSpec) -> Sequence[TensorSharding]:
        """Return the shardings of a choice that a specification stands for, each of another propagation priority."""
        rank, mesh = len(choice.shape), choice.mesh
        if len(spec) > rank:
            raise ValueError(f"'{name}' has {rank} dimensions, but the sharding has {len(spec)}")
        wanted = TensorSharding.of(*spec, *[None] * (rank - len(spec)), mesh=self._mesh_name).close()
        for axis in wanted.axes():
            if axis.name not in mesh:
                raise ValueError(f"the mesh has no axis '{axis.name}': its axes are {', '.join(mesh)}")
        for dim, (size, sharding) in enumerate(zip(choice.shape, wanted.dims, strict=True)):
            if size % sharding.sharded_size(mesh):
                parts = sharding.sharded_size(mesh)
                raise ValueError(f"dimension {dim} of '{name}' of size {size} is not divisible by {parts}")
        same = [option for option in choice.options if option.dim_axes == wanted.dim_axes]
        return same or [wanted.map_dims(lambda dim: replace(dim, priority=choice.priority if dim.axes else None))]
