"""One propagation step: the update of the shardings of an operation's operands and results.

A step is a pure function of the operation's kind, the strategy, the open stages, and the shardings of the operation's
tensors. Shardings are numbered, so these inputs are a few small integers, and steps are memoized: the layers of a model
repeat the same few hundred steps, and so do the modules that a process compiles.
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


class StepInputs(NamedTuple):
    """The inputs of a step besides the kind of the operation."""

    strategy: Strategy
    stages: int
    """The number of open stages."""
    before: tuple[int, ...]
    """The numbers of the tensors' shardings before the step."""


Outcome = tuple[tuple[SetSharding, ...], bool, StepInputs]
"""The shardings that a step sets, operands first; whether the next step is known to set none; and the step's inputs.

After a step that sets none, the next step is the one of any later round with the same strategy."""

Outcomes = dict[tuple[int, ...], Outcome]
"""The outcomes of steps, by the numbers of the tensors' shardings."""

NO_SHARDING = 0
"""The number that stands for the absence of a sharding."""


@dataclass(frozen=True, eq=False)
class OperationKind:
    """The properties of an operation that determine its steps, together with the shardings; compared by identity."""

    rule: OpShardingRule
    role: Role = Role.PASS_THROUGH
    reuses: bool = False
    """True if the operation reads a tensor that has other uses."""
    is_elementwise: bool = False
    conservative: bool = False
    direction: Direction | None = None
    """The direction that a propagation barrier allows in all stages; None if the stages determine it."""
    from_target: Callable[[TensorSharding], TensorSharding] | None = None
    """Converts the last tensor's sharding to the other tensors' side of a manual computation's boundary."""
    to_target: Callable[[TensorSharding], TensorSharding] | None = None
    """The inverse of `from_target`."""

    @cached_property
    def directions(self) -> tuple[tuple[Direction, ...], ...]:
        """The direction along each factor, indexed by the number of open stages."""
        if self.direction is not None:
            return ((self.direction,) * self.rule.num_factors,) * (ALL_STAGES + 1)
        return tuple(directions(self.role, self.reuses, self.rule, stages) for stages in range(ALL_STAGES + 1))


_MAX_STEPS = 2**16
"""The number of memoized steps above which all are dropped, which bounds the memory of a long-lived process."""


@dataclass
class Steps:
    """The numbered shardings of all modules with the same meshes, and the memoized steps."""

    meshes: Mapping[str, Mesh]
    shardings: list[TensorSharding | None] = field(default_factory=lambda: [None])
    """Sharding by number."""
    count: int = 0
    """The number of memoized steps."""
    _numbers: dict[TensorSharding, int] = field(default_factory=dict[TensorSharding, int])
    _numbering: Lock = field(default_factory=Lock)
    _outcomes: MutableMapping[OperationKind, dict[tuple[Strategy, tuple[Direction, ...]], Outcomes]] = field(
        default_factory=WeakKeyDictionary[OperationKind, dict[tuple[Strategy, tuple[Direction, ...]], Outcomes]]
    )
    """Weak: the kind of a two-sided edge belongs to a single operation, and refers to it and so to its module."""

    def number(self, sharding: TensorSharding | None) -> int:
        """Return the number of `sharding`, allocating one for a new sharding."""
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
        """Return the mesh that `sharding` refers to.

        Raises:
            DiagnosticError: The module has no mesh of that name.
        """
        if isinstance(sharding.mesh, Mesh):
            return sharding.mesh
        if sharding.mesh not in self.meshes:
            raise error(None, f"unknown mesh: @{sharding.mesh}")
        return self.meshes[sharding.mesh]

    def common_mesh(self, shardings: Sequence[TensorSharding | None]) -> str | Mesh | None:
        """Return the mesh of all `shardings`, by name or inline as the first of them refers to it.

        Shardings on an empty mesh are compatible with any mesh. Returns None if there are no shardings, or if their
        meshes differ.
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
        """Return the outcome of a step at an operation of `kind` whose tensors have `shardings`; memoized."""
        outcomes = self.outcomes(kind, strategy, stages)
        outcome = outcomes.get(shardings)
        if outcome is None:
            sets_along, now = self._sets(kind, strategy, shardings), kind.directions[stages]
            sets = sets_along(now)
            settles = (
                self._settles(kind, strategy, stages, shardings, sets)
                if sets
                else not any(map(sets_along, {*kind.directions[1:]} - {now}))
            )
            outcome = outcomes[shardings] = sets, settles, StepInputs(strategy, stages, shardings)
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
        """Return whether the next step is known to set nothing after one that `sets` these shardings."""
        new = dict(sets)
        after = tuple(new.get(position, number) for position, number in enumerate(before))
        # Operands with equal shardings may be the same tensor, to which the step cannot give two shardings.
        operands = {*islice(zip(before, after, strict=True), len(kind.rule.operands))}
        if len(operands) > len({old for old, _ in operands}):
            return False
        sets_more, _, _ = self.step(kind, strategy, stages, after)
        return not sets_more

    def outcomes(self, kind: OperationKind, strategy: Strategy, stages: int) -> Outcomes:
        """Return the memoized steps of `kind` with these directions."""
        return self._outcomes.setdefault(kind, {}).setdefault((strategy, kind.directions[stages]), {})

    def moves(self, kind: OperationKind, inputs: StepInputs) -> list[Move]:
        """Repeat a step that changed shardings, and return its moves."""
        old = self.source_side_shardings(kind, inputs.before)
        mesh_name = self.common_mesh(old)
        assert mesh_name is not None
        mesh = self.mesh(mesh_name)
        before, after = project(kind.rule, old, mesh), project(kind.rule, old, mesh)
        _propagate(kind, inputs.strategy, kind.directions[inputs.stages], after, mesh)
        return moves(kind.rule, before, after, mesh)

    def source_side_shardings(self, kind: OperationKind, numbers: Sequence[int]) -> list[TensorSharding | None]:
        """Return the shardings of an operation's tensors, the target's converted to the sources' side of the edge."""
        shardings = [self.shardings[number] for number in numbers]
        if kind.from_target and shardings[-1] is not None:
            shardings[-1] = kind.from_target(shardings[-1])
        return shardings

    def mesh(self, name: str | Mesh) -> Mesh:
        """Resolve a sharding's reference to its mesh."""
        return self.meshes[name] if isinstance(name, str) else name

    def _sets(
        self, kind: OperationKind, strategy: Strategy, numbers: tuple[int, ...]
    ) -> Callable[[Sequence[Direction]], tuple[SetSharding, ...]]:
        """Return a function that returns the shardings that a step sets, given the direction along each factor."""
        old = self.source_side_shardings(kind, numbers)
        mesh_name = self.common_mesh(old)
        if mesh_name is None:
            return lambda _: ()
        mesh = self.mesh(mesh_name)
        if mesh.is_maximal or not any(dim.axes for sharding in old if sharding for dim in sharding.dims):
            return lambda _: ()
        rule, unchanged = kind.rule, list[ShardingProjection]()

        def sets_along(directions: Sequence[Direction]) -> tuple[SetSharding, ...]:
            if not any(directions):
                return ()
            projection = unchanged.pop() if unchanged else project(rule, old, mesh)
            changed = _propagate(kind, strategy, directions, projection, mesh)
            if not changed:
                unchanged.append(projection)
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

        return sets_along


_steps: dict[tuple[tuple[str, Mesh], ...], Steps] = {}
_steps_lock = Lock()


def memoized_steps(meshes: Mapping[str, Mesh]) -> Steps:
    """Return the steps memoized in this process for modules with these meshes, by mesh name."""
    key = tuple(sorted(meshes.items()))
    with _steps_lock:
        steps = _steps.get(key)
        if steps is None or steps.count > _MAX_STEPS:
            if sum(each.count for each in _steps.values()) > _MAX_STEPS:
                _steps.clear()
            steps = _steps[key] = Steps(meshes)
    return steps


def _propagate(
    kind: OperationKind, strategy: Strategy, directions: Sequence[Direction], projection: ShardingProjection, mesh: Mesh
) -> set[int]:
    return _STRATEGIES[strategy](
        projection, directions, kind.rule.factor_sizes, mesh, kind.conservative, kind.is_elementwise
    )
