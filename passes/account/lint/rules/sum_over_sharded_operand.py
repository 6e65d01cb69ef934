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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from xdsl.ir import BlockArgument, Operation

from sdy.ir.shapes import rank
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.dimensions import Dimension, Origins, contracted, moved_alike, suspicion_of
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.gather_before_custom_call import is_kernel
from sdy.passes.account.lint.use_def import users_through
from sdy.passes.spmd.remat.recomputed import is_in_backward_pass
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.gather import GatherOp

_OF_GATHER = 0.5
"""The part of the bytes of a sum that a gather of its result has."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find sums over devices for products that contract a sharded dimension of an argument, except in gradients."""
    found: dict[Dimension, list[Collective]] = {}
    origins = [Origins(program, most_products) for most_products in range(2)]
    for collective in program.collectives:
        op, cause = collective.source, collective.cause
        if cause is None or cause.purpose is not Purpose.SUM or not isinstance(op, DotGeneralOp | ConvolutionOp):
            continue
        if not is_in_backward_pass(op):
            for at in _arguments(origins, contracted(op, collective.axes), collective.axes):
                found.setdefault(at, []).append(collective)
    candidates = Candidates(program)
    for at, collectives in found.items():
        suspicion = suspicion_of(program, at, collectives, partial(_cures, program, candidates, at))
        gathered = sum(each.bytes for each in collectives if each.source and _is_for_kernel(each.source))
        yield replace(suspicion, received=suspicion.received - _OF_GATHER * gathered)


def _is_for_kernel(op: Operation) -> bool:
    """Return whether a custom call needs the whole result of an operation: any layout gathers it."""
    return any(map(is_kernel, users_through(op.results[0])))


def _arguments(origins: Sequence[Origins], operands: Iterable[Dimension], axes: Sequence[str]) -> Sequence[Dimension]:
    """Return the dimensions of arguments that those of operands come from and that `axes` shard.

    They are those without a product between them, or else those of the weights that compute both operands, as of the
    queries and the keys of attention.
    """
    operands = [*operands]
    for each in origins:
        traced = dict.fromkeys(found for at in operands for found in each.of(at))
        if found := [at for at in traced if not {axis.name for axis in at.axes}.isdisjoint(axes)]:
            return found
    return []


def _cures(program: LintedProgram, candidates: Candidates, at: Dimension) -> Iterator[Cure]:
    """Yield layouts that split another dimension, in all layers, and in all matrices of the tree.

    These have their specs reversed, or are all split along one dimension, as experts are along that of their number.
    Rows of a table that a batch looks up can also be constrained to the layout of the batch.
    """
    argument = at.tensor
    assert isinstance(argument, BlockArgument)
    for dims in candidates.moved(argument, value_dims(argument)):
        yield Cure(tuple(candidates.shard(each, dims) for each in candidates.in_layers(argument)))
    if at.products:
        yield from moved_alike(program, candidates, argument, at)
    lookups = [use.operation.results[0] for use in argument.uses if isinstance(use.operation, GatherOp)]
    yield from (cure for value in lookups for cure in candidates.of_result(value)[:1])
    matrices = [
        each
        for each in program.main.args
        if tree(each) == tree(argument) and rank(each.type) == rank(argument.type) and _is_split(each, at)
    ]
    reversed_ = {
        state: (*dims[:-2], dims[-1], dims[-2])
        for each in matrices
        for state in candidates.with_state(each)
        if len(dims := value_dims(each)) > 1
    }
    yield Cure(tuple(candidates.shard(each, dims) for each, dims in reversed_.items()))
    for index in range(rank(argument.type)):
        moved = {
            state: next((dims for dims in candidates.moved(each, value_dims(each)) if dims[index] == at.axes), None)
            for each in matrices
            for state in candidates.with_state(each)
        }
        if None not in moved.values():
            yield Cure(tuple(candidates.shard(each, dims) for each, dims in moved.items()))


def _is_split(argument: BlockArgument, at: Dimension) -> bool:
    """Return whether an axis of `at` shards an argument."""
    return any(axis in at.axes for axes in value_dims(argument) for axis in axes)
