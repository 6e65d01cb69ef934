"""One step: what an operation does to the shardings around it.

The step is a pure function of the kind of operation, the strategy, the stages that are open, and the shardings of the
operation's tensors. Shardings are numbered, so that those are a few small integers, and what a step makes of them is
remembered: the layers of a model repeat the same few hundred steps, and so do the modules that a process compiles.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from sdy.diagnostics import error
from sdy.factors import ShardingProjection, project, unproject
from sdy.mesh import Mesh
from sdy.passes.propagation import aggressive, basic
from sdy.passes.propagation.directions import ALL_STAGES, Direction, Role, directions
from sdy.passes.propagation.moves import Move, moves
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding

Strategy = Literal["basic", "aggressive"]

_STRATEGIES = {"basic": basic.propagate, "aggressive": aggressive.propagate}

SetSharding = tuple[int, int]
"""The position of a tensor, operands first, and the number of its new sharding."""


class Occasion(NamedTuple):
    """When a step does what it does: in rounds like this one, when the tensors have these shardings."""

    strategy: Strategy
    stages: int
    before: tuple[int, ...]
    """The numbers of the shardings."""


Outcome = tuple[tuple[SetSharding, ...], bool, Occasion]
"""What a step sets, operands first; whether one more step would surely set nothing; and when that is so."""

Outcomes = dict[tuple[int, ...], Outcome]
"""What steps do, by the numbers of the shardings of the operation's tensors."""

NO_SHARDING = 0
"""The number of no sharding at all."""


@dataclass(frozen=True, eq=False)
class OperationKind:
    """Everything about an operation that decides what a step does, save the shardings; compared by identity."""

    rule: OpShardingRule
    role: Role = Role.PASS_THROUGH
    reuses: bool = False
    """Whether the operation reads a tensor that is read elsewhere too."""
    is_elementwise: bool = False
    conservative: bool = False
    direction: Direction | None = None
    """The direction that a barrier allows at all stages; None where the stages decide."""
    from_target: Callable[[TensorSharding], TensorSharding] | None = None
    """How the last tensor's sharding looks from the others, where they are on two sides of a manual computation."""
    to_target: Callable[[TensorSharding], TensorSharding] | None = None
    """The inverse of `from_target`."""

    @cached_property
    def directions(self) -> tuple[tuple[Direction, ...], ...]:
        """The direction along each factor, for each number of open stages from 0 on."""
        if self.direction is not None:
            return ((self.direction,) * self.rule.num_factors,) * (ALL_STAGES + 1)
        return tuple(directions(self.role, self.reuses, self.rule, stages) for stages in range(ALL_STAGES + 1))


_MOST = 2**16
"""So many steps are remembered before all are forgotten, so that a process that lives long does not grow."""


@dataclass
class Steps:
    """The numbered shardings of modules with the same meshes, and the steps taken so far."""

    meshes: Mapping[str, Mesh]
    shardings: list[TensorSharding | None] = field(default_factory=lambda: [None])
    """Sharding by number."""
    count: int = 0
    """How many steps are remembered."""
    _numbers: dict[TensorSharding, int] = field(default_factory=dict[TensorSharding, int])
    _numbering: Lock = field(default_factory=Lock)
    _taken: MutableMapping[OperationKind, dict[tuple[Strategy, tuple[Direction, ...]], Outcomes]] = field(
        default_factory=WeakKeyDictionary[OperationKind, dict[tuple[Strategy, tuple[Direction, ...]], Outcomes]]
    )
    """Weak, as a kind that only one operation has leads to it, and so to its module."""

    def number(self, sharding: TensorSharding | None) -> int:
        """The number of `sharding`, a new one if it has not been met before."""
        if sharding is None:
            return NO_SHARDING
        number = self._numbers.get(sharding)
        if number is None:
            with self._numbering:
                number = self._numbers.setdefault(sharding, len(self.shardings))
                if number == len(self.shardings):
                    self.shardings.append(sharding)
        return number

    def mesh_of(self, sharding: TensorSharding) -> Mesh:
        """The mesh that `sharding` refers to. Raises DiagnosticError where the module has none of that name."""
        if isinstance(sharding.mesh, Mesh):
            return sharding.mesh
        if sharding.mesh not in self.meshes:
            raise error(None, f"unknown mesh: @{sharding.mesh}")
        return self.meshes[sharding.mesh]

    def common_mesh(self, shardings: Sequence[TensorSharding | None]) -> str | Mesh | None:
        """How the first sharding that has axes names its mesh; None if there are no shardings, or several meshes.

        Empty meshes give way to any other.
        """
        name: str | Mesh | None = None
        mesh = Mesh()
        for sharding in shardings:
            if sharding is None:
                continue
            other = self.mesh_of(sharding)
            if mesh.is_empty:
                name, mesh = sharding.mesh, other
            elif not other.is_empty and other != mesh:
                return None
        return name

    def step(self, kind: OperationKind, strategy: Strategy, stages: int, shardings: tuple[int, ...]) -> Outcome:
        """What a visit of an operation of `kind` does when its tensors have `shardings`."""
        taken = self.taken(kind, strategy, stages)
        outcome = taken.get(shardings)
        if outcome is None:
            sets = self._sets(kind, strategy, kind.directions[stages], shardings)
            settles = not sets or self._settles(kind, strategy, stages, shardings, sets)
            outcome = taken[shardings] = sets, settles, Occasion(strategy, stages, shardings)
            self.count += 1
        return outcome

    def _settles(
        self,
        kind: OperationKind,
        strategy: Strategy,
        stages: int,
        before: tuple[int, ...],
        sets: tuple[SetSharding, ...],
    ) -> bool:
        """Whether a step that `sets` shardings leaves nothing to do for the next one."""
        new = dict(sets)
        after = tuple(new.get(position, number) for position, number in enumerate(before))
        # Operands that look alike may be one tensor, which cannot come to look different from itself.
        operands = {*islice(zip(before, after, strict=True), len(kind.rule.operands))}
        if len(operands) > len({old for old, _ in operands}):
            return False
        sets_more, _, _ = self.step(kind, strategy, stages, after)
        return not sets_more

    def taken(self, kind: OperationKind, strategy: Strategy, stages: int) -> Outcomes:
        """The steps taken so far at operations of `kind` in rounds that are alike to them."""
        return self._taken.setdefault(kind, {}).setdefault((strategy, kind.directions[stages]), {})

    def moves(self, kind: OperationKind, occasion: Occasion) -> list[Move]:
        """What moved in a step that set something, taken once more."""
        old = self.as_seen(kind, occasion.before)
        mesh_name = self.common_mesh(old)
        assert mesh_name is not None
        mesh = self.mesh(mesh_name)
        before, after = project(kind.rule, old, mesh), project(kind.rule, old, mesh)
        _propagate(kind, occasion.strategy, kind.directions[occasion.stages], after, mesh)
        return moves(kind.rule, before, after, mesh)

    def as_seen(self, kind: OperationKind, numbers: Sequence[int]) -> list[TensorSharding | None]:
        """The shardings of an operation's tensors as they look from one side of it."""
        seen = [self.shardings[number] for number in numbers]
        if kind.from_target and seen[-1] is not None:
            seen[-1] = kind.from_target(seen[-1])
        return seen

    def mesh(self, name: str | Mesh) -> Mesh:
        """The mesh that a sharding names so."""
        return self.meshes[name] if isinstance(name, str) else name

    def _sets(
        self, kind: OperationKind, strategy: Strategy, directions: Sequence[Direction], numbers: tuple[int, ...]
    ) -> tuple[SetSharding, ...]:
        if not any(numbers) or not any(directions):
            return ()
        old = self.as_seen(kind, numbers)
        mesh_name = self.common_mesh(old)
        if mesh_name is None:
            return ()
        mesh = self.mesh(mesh_name)
        if mesh.is_maximal or not any(dim.axes for sharding in old if sharding for dim in sharding.dims):
            return ()
        rule = kind.rule
        projection = project(rule, old, mesh)
        changed = _propagate(kind, strategy, directions, projection, mesh)
        sets: list[SetSharding] = []
        for position in sorted(changed):
            tensor, mapping = projection.tensors[position], rule.tensors[position]
            new = unproject(tensor, mapping, rule.factor_sizes, mesh_name, mesh)
            before = old[position]
            if new == before or (before is None and not any(new.axes())):
                continue
            if kind.to_target and position == len(old) - 1:
                new = kind.to_target(new)
            sets.append((position, self.number(new)))
        return tuple(sets)


_steps: dict[tuple[tuple[str, Mesh], ...], Steps] = {}


def remembered_steps(meshes: Mapping[str, Mesh]) -> Steps:
    """The steps of modules with these meshes, by name, with those taken in earlier modules of the process."""
    key = tuple(sorted(meshes.items()))
    steps = _steps.get(key)
    if steps is None or steps.count > _MOST:
        if sum(each.count for each in _steps.values()) > _MOST:
            _steps.clear()
        steps = _steps[key] = Steps(meshes)
    return steps


def _propagate(
    kind: OperationKind, strategy: Strategy, directions: Sequence[Direction], projection: ShardingProjection, mesh: Mesh
) -> set[int]:
    return _STRATEGIES[strategy](
        projection, directions, kind.rule.factor_sizes, mesh, kind.conservative, kind.is_elementwise
    )
