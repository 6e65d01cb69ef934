"""Find the axes that a tensor did not get from its neighbors, and the conflict that stopped each.

The analysis looks at the fixed point of propagation, not at its steps.
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
    """Return the axes that neighbors of `node` have along its factors, sorted by dimension.

    Args:
        run: The propagation.
        node: A node without axes.
        names: The names of tensors in the explanation.

    Returns:
        For each dimension, axis and reason, the first operation at which the axis stopped.
    """
    missed_by_reason: dict[tuple[int, AxisRef, str], Missed] = {}
    for adjacent in _adjacent_operations(run, node, names):
        for missed in adjacent.missed(node):
            missed_by_reason.setdefault((missed.dimension, missed.axis, missed.reason), missed)
    return tuple(sorted(missed_by_reason.values(), key=lambda missed: missed.dimension))


def _adjacent_operations(run: PropagationRun, node: int, names: PresentNames) -> "Iterator[_AdjacentOperation]":
    """Yield the operations that read or define `node`, each with the projection of its tensors."""
    solution = run.solution
    snapshot, steps = solution.snapshot, solution.steps
    readers = sorted({*snapshot.readers[node]}.difference(solution.erased))
    adjacent = [(number, snapshot.kinds[number], snapshot.tensors[number]) for number in readers]
    returned = [(SIGNATURE, kind, tensors) for kind, tensors in snapshot.returns if node in tensors]
    for number, kind, nodes in (*adjacent, *returned):
        if kind is None:
            continue
        shardings = steps.source_side_shardings(kind, [steps.number(solution.shardings[each]) for each in nodes])
        mesh = steps.common_mesh(shardings)
        if mesh is not None and not steps.mesh(mesh).is_maximal:
            tensors = project(kind.rule, shardings, steps.mesh(mesh)).tensors
            yield _AdjacentOperation(run, names, number, kind, nodes, tensors)


@dataclass(frozen=True)
class _AdjacentOperation:
    run: PropagationRun
    names: PresentNames
    number: int
    """The number of the operation."""
    kind: OperationKind
    nodes: Sequence[int]
    tensors: Sequence[TensorFactors]
    """The sharding of each node, by factor."""

    def missed(self, node: int) -> Iterator[Missed]:
        """Yield the first axis that each other tensor has along a factor of `node`, with the reason why it stopped."""
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
        """Explain why `axis` did not propagate along `factor`: the first conflict in any tensor of the operation."""
        if self.tensors[target].factors[factor].axes:
            return "it arrived, and a later pass removed it, for example because it does not divide the dimension"
        onwards = Direction.FORWARD if source < len(self.kind.rule.operands) else Direction.BACKWARD
        if not self.kind.directions[ALL_STAGES][factor] & onwards:
            return "the operation propagates no axis along this factor in this direction"
        others = (each for each in range(len(self.tensors)) if each not in (source, target))
        for position in (target, *others):
            if problem := _problem(self.tensors[position], factor, axis):
                return f"{self._name(position)} {problem}"
        return f"its shards along this factor are not contiguous in {self._name(target)}"


def _problem(tensor: TensorFactors, factor: int, axis: AxisRef) -> str | None:
    """Explain why `axis` cannot be a tensor's first axis along `factor`; None if it can, or the factor is absent."""
    if any(axis.overlaps(other) for other in (*tensor.replicated, *tensor.unreduced)):
        return f"is replicated or unreduced along axis {axis}"
    for other, sharding in tensor.factors.items():
        if other != factor and any(axis.overlaps(used) for used in (*sharding.axes, *sharding.overflow)):
            return f"has axis {axis} along factor {factor_name(other)}"
    sharding = tensor.factors.get(factor)
    if sharding is None:
        return None
    if sharding.axes and not sharding.axes[0].overlaps(axis):
        return f"has axis {sharding.axes[0]} along this factor"
    return "is closed along this factor" if sharding.is_closed and not sharding.axes else None
