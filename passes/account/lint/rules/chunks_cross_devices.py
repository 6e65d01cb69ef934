"""A fused projection is cut into chunks that cross devices.

A fused weight holds the columns of several projections side by side. Where an axis shards them, the first devices hold
the first chunk and the last devices the last one, but each chunk of the product is sharded over all of them: devices
permute the chunks in each step, and again in the gradient. In an interleaved weight each device holds its part of every
chunk, and nothing moves. Interleave the weight once, when it is made or loaded, and so its bias and the state of its
optimizer. The rule reports no chunks that the axis does not divide.

Tensors that are joined along a sharded dimension, such as two batches, move in the same way, and again where the result
is cut. Rows that are stacked along a second dimension stay on their devices: `jnp.stack([real, fake], 1)`, reshaped to
rows.

Before::

    gate, up = jnp.split(x @ w, 2, -1)  # w is (width, 2 * hidden), sharded as P(None, "model")
    hidden = jax.nn.silu(gate) * up

After::

    both = jnp.einsum("bd,dcf->bcf", x, w)  # w is (width, 2, hidden), sharded as P(None, None, "model")
    hidden = jax.nn.silu(both[:, 0]) * both[:, 1]
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import shape_of
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.dimensions import Dimension, sources
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.fused_weight import FusedWeight
from sdy.passes.account.lint.joined_chunks import joined_chunks
from sdy.passes.account.lint.program import LintedProgram
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ConcatenateOp, ReshapeOp
from sdy.stablehlo.slicing import SliceOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Yield the products whose chunks devices exchange, with the weights to interleave."""
    found: dict[tuple[FusedWeight, ...], list[_Fused]] = {}
    for fused in _fused(program):
        if fused.collectives(program) and (weights := _weights(program, fused)):
            found.setdefault(weights, []).append(fused)
    reported: set[Collective] = set()
    for weights, alike in found.items():
        cures = [cure for weight in weights if (cure := weight.interleaved)]
        collectives = {each for fused in alike for each in fused.collectives(program)} - reported
        if collectives and len(cures) == len(weights):
            reported |= collectives
            yield _suspicion(program, alike[0], weights, cures, collectives)
    for joined in joined_chunks(program):
        left = [each for each in joined.collectives(program) if each not in reported]
        if left:
            reported.update(left)
            yield joined.suspicion(left)


@dataclass(frozen=True)
class _Fused:
    """A tensor that slices cut along one dimension into disjoint chunks."""

    whole: Dimension
    slices: Sequence[SliceOp]
    bounds: Sequence[tuple[int, int]]
    """Start and limit of each chunk, in ascending order."""

    @cached_property
    def operations(self) -> set[Operation]:
        """The slices whose results keep the axes, and the reshapes and constraints directly around them."""
        axes = {axis.name for axis in self.whole.axes}
        slices = [cut for cut in self.slices if axes <= _axis_names(cut.result)]
        users = (use.operation for cut in slices for use in cut.result.uses)
        found: set[Operation] = {*slices, *(op for op in users if isinstance(op, ReshapeOp | ReshardOp))}
        before = self.whole.tensor.owner
        return found | {before} if isinstance(before, ReshapeOp) else found

    def collectives(self, program: LintedProgram) -> list[Collective]:
        """Return the collectives of the cut, and of the gradient, which joins the chunks again."""
        return [
            each
            for each in program.collectives
            if each.source is not None and (each.source in self.operations or self._is_joined_by(each.source))
        ]

    def _is_joined_by(self, op: Operation) -> bool:
        tensor, index = self.whole.tensor, self.whole.index
        match op:
            case ConcatenateOp():
                return op.result.type == tensor.type and op.dimension.value.data == index
            case PadOp():
                return op.result.type == tensor.type and shape_of(op.operand)[index] < shape_of(tensor)[index]
            case _:
                return False


def _axis_names(value: SSAValue) -> set[str]:
    sharding = get_sharding(value)
    return {axis.name for axis in sharding.axes()} if sharding else set()


def _fused(program: LintedProgram) -> Iterator[_Fused]:
    slices: dict[SSAValue, list[SliceOp]] = {}
    for op in program.operations:
        if isinstance(op, SliceOp):
            slices.setdefault(op.operand, []).append(op)
    for tensor, cuts in slices.items():
        index, *others = {_cut_dimension(cut) for cut in cuts}
        if index is None or others:
            continue
        bounds = sorted({cut.ranges()[index][:2] for cut in cuts})
        if len(bounds) > 1 and all(limit <= start for (_, limit), (start, _) in pairwise(bounds)):
            yield _Fused(Dimension(tensor, index), cuts, bounds)


def _cut_dimension(cut: SliceOp) -> int | None:
    """Return the only dimension that a slice cuts; None where it cuts several, or has a stride."""
    ranges = enumerate(zip(cut.ranges(), shape_of(cut.operand), strict=True))
    cuts = [(index, stride) for index, ((start, limit, stride), size) in ranges if limit - start < size or stride > 1]
    return cuts[0][0] if len(cuts) == 1 and cuts[0][1] == 1 else None


def _weights(program: LintedProgram, fused: _Fused) -> tuple[FusedWeight, ...]:
    """Return the arguments that have the dimension; none where no product takes one, or the chunks do not fill it."""
    found = [*sources(program, fused.whole)]
    axes = max((each.axes for each in found), key=lambda axes: total_size(axes, program.mesh))
    parts = total_size(axes, program.mesh)
    arguments = [each for each in found if each.tensor.owner is program.main.body.block]
    if parts == 1 or not any(each.products for each in arguments):
        return ()
    weights: dict[int, FusedWeight] = {}
    for each in arguments:
        assert isinstance(each.tensor, BlockArgument)
        size = shape_of(each.tensor)[each.index]
        scale = size // shape_of(fused.whole.tensor)[fused.whole.index]
        sizes = tuple((limit - start) * scale for start, limit in fused.bounds)
        if sum(sizes) != size:
            return ()
        weights[each.tensor.index] = FusedWeight(each.tensor, each.index, sizes, axes, parts)
    return tuple(weights[index] for index in sorted(weights))


def _suspicion(
    program: LintedProgram,
    fused: _Fused,
    weights: Sequence[FusedWeight],
    cures: Sequence[str],
    collectives: Collection[Collective],
) -> Suspicion:
    names = " and ".join(program.called(each.argument) for each in weights)
    return Suspicion(
        fused.slices[0],
        f"{fused.whole.tensor.type}, a product with {names}, is cut along dimension {fused.whole.index} into "
        f"{len(fused.bounds)} chunks, which cross devices as {axes_text(weights[0].axes)} shards that dimension",
        f"interleave the chunks of {names} once, so that each device holds its part of every chunk: "
        f"{', '.join(cures)}; this saves all of these bytes",
        [GivenBy(each.argument) for each in weights],
        received=sum(each.bytes for each in collectives),
        collectives=[each.op for each in collectives],
    )
