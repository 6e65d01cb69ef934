"""A product contracts a sharded dimension of an argument, so that devices sum a result larger than what they hold.

Each device has a partial sum of the whole result, and an all-reduce adds them. Along another dimension of the argument,
the batch or the features, devices may need nothing of each other, or a smaller sum. A library that stores the weights
of a layer as (out, in) needs the specs of (in, out) reversed. Nothing is reported where every other layout that was
tried costs about as much, as in the second product of tensor parallelism.

Before::

    x = jax.device_put(x, P(None, "data"))  # (batch, features)
    y = jax.nn.relu(x @ w1) @ w2

After::

    x = jax.device_put(x, P("data", None))
"""

from collections.abc import Iterator, Sequence

from xdsl.ir import BlockArgument

from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.dimensions import Dimension, contracted, sources
from sdy.passes.account.lint.edits import Cure, dims_of
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find sums over devices for products that contract a sharded dimension of an argument, except in gradients."""
    found: dict[Dimension, list[Collective]] = {}
    for collective in program.collectives:
        op, cause = collective.source, collective.cause
        if cause is None or cause.purpose is not Purpose.SUM or not isinstance(op, DotGeneralOp | ConvolutionOp):
            continue
        if not is_in_backward_pass(op):
            for at in contracted(op, collective.axes):
                for each in _arguments(program, at, collective.axes):
                    found.setdefault(each, []).append(collective)
    candidates = Candidates(program)
    for argument, collectives in found.items():
        yield _suspicion(program, candidates, argument, collectives)


def _arguments(program: LintedProgram, at: Dimension, axes: Sequence[str]) -> Iterator[Dimension]:
    """Yield the dimensions of arguments that `at` comes from, without a product between them, and that `axes` shard."""
    for each in sources(program, at, through_products=False):
        is_argument = each.tensor.owner is program.main.body.block
        if is_argument and not {axis.name for axis in each.axes}.isdisjoint(axes):
            yield each


def _suspicion(
    program: LintedProgram, candidates: Candidates, at: Dimension, collectives: Sequence[Collective]
) -> Suspicion:
    product = max(collectives, key=lambda each: each.bytes).source
    assert product is not None
    return Suspicion(
        product,
        f"{product.name} contracts dimension {at.index} of {program.called(at.tensor)}, {at.tensor.type}, which "
        f"{axes_text(at.axes)} shards: devices sum its result, {product.results[0].type}",
        "",
        [GivenBy(at.tensor, at.axes)],
        received=sum(each.bytes for each in collectives),
        collectives=[each.op for each in collectives],
        cures=[*dict.fromkeys(_cures(program, candidates, at))],
    )


def _cures(program: LintedProgram, candidates: Candidates, at: Dimension) -> Iterator[Cure]:
    """Yield layouts that split another dimension, in all layers, and the reversed specs of all matrices of the tree."""
    argument = at.tensor
    assert isinstance(argument, BlockArgument)
    for dims in candidates.moved(argument, dims_of(get_sharding(argument), argument)):
        yield Cure(tuple(candidates.shard(each, dims) for each in candidates.in_layers(argument)))
    matrices = [
        each
        for each in program.main.args
        if tree(each) == tree(argument) and rank(each.type) == rank(argument.type) and _is_split(each, at)
    ]
    reversed_ = {
        state: (*dims[:-2], dims[-1], dims[-2])
        for each in matrices
        for state in candidates.with_state(each)
        if len(dims := dims_of(get_sharding(each), each)) > 1
    }
    yield Cure(tuple(candidates.shard(each, dims) for each, dims in reversed_.items()))


def _is_split(argument: BlockArgument, at: Dimension) -> bool:
    """Return whether an axis of `at` shards an argument."""
    return any(axis in at.axes for axes in dims_of(get_sharding(argument), argument) for axis in axes)
