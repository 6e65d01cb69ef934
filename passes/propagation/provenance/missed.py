"""Axes that a tensor did not get: which tensors beside it are split along a factor that it has, and what kept them.

What is told is how things stood when propagation had ended, where nothing moves any more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sdy.axes import AxisRef
from sdy.diagnostics import location_of
from sdy.dialect.rule_syntax import factor_name
from sdy.factors import TensorFactors, project
from sdy.passes.propagation.directions import ALL_STAGES, Direction
from sdy.passes.propagation.provenance.explanation import Hop, Missed
from sdy.passes.propagation.provenance.history import PropagationRun
from sdy.passes.propagation.provenance.present_names import PresentNames
from sdy.passes.propagation.solution import SIGNATURE
from sdy.passes.propagation.step import OperationKind


def missed_axes(run: PropagationRun, node: int, names: PresentNames) -> tuple[Missed, ...]:
    """The axes that could have come to `node`, which has none: the first operation that kept each, for each reason."""
    found: dict[tuple[int, AxisRef, str], Missed] = {}
    for surroundings in _surroundings(run, node, names):
        for missed in surroundings.missed(node):
            found.setdefault((missed.dimension, missed.axis, missed.reason), missed)
    return tuple(sorted(found.values(), key=lambda missed: missed.dimension))


def _surroundings(run: PropagationRun, node: int, names: PresentNames) -> "Iterator[_Surroundings]":
    """The operations around `node`, each with its tensors."""
    solution = run.solution
    snapshot, steps = solution.snapshot, solution.steps
    readers = sorted({*snapshot.readers[node]}.difference(solution.erased))
    around = [(number, snapshot.kinds[number], snapshot.tensors[number]) for number in readers]
    returned = [(SIGNATURE, kind, tensors) for kind, tensors in snapshot.returns if node in tensors]
    for number, kind, nodes in (*around, *returned):
        if kind is None:
            continue
        shardings = steps.as_seen(kind, [steps.number(solution.shardings[each]) for each in nodes])
        mesh = steps.common_mesh(shardings)
        if mesh is not None and not steps.mesh(mesh).is_maximal:
            tensors = project(kind.rule, shardings, steps.mesh(mesh)).tensors
            yield _Surroundings(run, names, number, kind, nodes, tensors)


@dataclass(frozen=True)
class _Surroundings:
    run: PropagationRun
    names: PresentNames
    number: int
    """The number of the operation."""
    kind: OperationKind
    nodes: Sequence[int]
    tensors: Sequence[TensorFactors]
    """How each node is split, by factor."""

    def missed(self, node: int) -> Iterator[Missed]:
        """The axes of other tensors that `node` has none of, though it has their factor."""
        for target, mapping in enumerate(self.kind.rule.tensors):
            for dimension, factor in ((dimension, factor) for dimension, dim in enumerate(mapping) for factor in dim):
                for source, tensor in enumerate(self.tensors):
                    sharding = tensor.factors.get(factor)
                    if self.nodes[target] == node != self.nodes[source] and sharding is not None and sharding.axes:
                        axis = sharding.axes[0]
                        reason = self._reason(source, target, factor, axis)
                        yield Missed(dimension, axis, self._hop(source, target, factor), reason)

    def _hop(self, source: int, target: int, factor: int) -> Hop:
        operation = self.names.operation(self.run, self.number, self.nodes)
        return Hop(
            target=self._name(target),
            source=self._name(source),
            operation=operation.name,
            factor=factor_name(factor),
            factor_size=self.kind.rule.factor_sizes[factor],
            where=location_of(operation),
        )

    def _name(self, position: int) -> str:
        return self.names.of_node(self.run, self.nodes[position])

    def _reason(self, source: int, target: int, factor: int, axis: AxisRef) -> str:
        """Why `axis` did not come along `factor`, whichever tensor of the operation could not have it so."""
        if self.tensors[target].factors[factor].axes:
            return "it came, and was removed after propagation, as where it does not divide the dimension"
        onwards = Direction.FORWARD if source < len(self.kind.rule.operands) else Direction.BACKWARD
        if not self.kind.directions[ALL_STAGES][factor] & onwards:
            return "the operation lets no axis through along this factor in this direction"
        others = (each for each in range(len(self.tensors)) if each not in (source, target))
        for position in (target, *others):
            if problem := _problem(self.tensors[position], factor, axis):
                return f"{self._name(position)} {problem}"
        return f"its parts along this factor are no parts of {self._name(target)} that one device could hold"


def _problem(tensor: TensorFactors, factor: int, axis: AxisRef) -> str | None:
    """Why a tensor cannot have `axis` first of all along `factor`; None where it can, or has not the factor."""
    if any(axis.overlaps(other) for other in (*tensor.replicated, *tensor.unreduced)):
        return f"is to be replicated or unreduced over axis {axis}"
    for other, sharding in tensor.factors.items():
        if other != factor and any(axis.overlaps(used) for used in (*sharding.axes, *sharding.overflow)):
            return f"has axis {axis} along factor {factor_name(other)}"
    sharding = tensor.factors.get(factor)
    if sharding is None:
        return None
    if sharding.axes and not sharding.axes[0].overlaps(axis):
        return f"has axis {sharding.axes[0]} along this factor"
    return "is closed along this factor" if sharding.is_closed and not sharding.axes else None
