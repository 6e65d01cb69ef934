"""A parameter is replicated, though most parameters are sharded over the axis that shards the batch.

With fully sharded data parallelism each device holds a part of each parameter and of its optimizer state. One that has
no sharding, such as the table of an embedding, takes as many times the memory as the axis has devices. The rule reports
parameters that are not much smaller than the largest one, and for which a layout helps that was tried.

Before::

    params = {"layers": shard(layers, P("fsdp")), "embed": shard(embed, P())}  # the batch is sharded over "fsdp"

After::

    params = {"layers": shard(layers, P("fsdp")), "embed": shard(embed, P("fsdp"))}
"""

from collections.abc import Iterable, Iterator
from itertools import chain, product

from xdsl.ir import BlockArgument

from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor
from sdy.passes.account.lint.candidates import Candidates, tree
from sdy.passes.account.lint.edits import Cure, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.batch_not_sharded import data_arguments
from sdy.passes.common.properties import num_bytes

_LEAST_SHARDED = 0.5
"""The part of the bytes of a tree of arguments that an axis shards, so that the rest is expected to be sharded."""

_LEAST_LARGE = 1 / 8
"""The part of the bytes of the largest argument that a replicated one has."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find replicated parameters in trees whose other parameters an axis of the batch shards."""
    candidates = Candidates(program)
    batches = data_arguments(program)
    batch = {axis.name for each in batches.values() for argument in each for axis in value_dims(argument)[0]}
    states = {*chain(*program.optimizer_states.values())}
    trees: dict[str, list[BlockArgument]] = {}
    for argument in program.main.args:
        if is_static_tensor(argument.type) and argument not in states and tree(argument) not in {*batches, ""}:
            trees.setdefault(tree(argument), []).append(argument)
    for name, parameters in product(batch, trees.values()):
        whole = [each for each in parameters if name not in _axes(each)]
        part = 1 - _bytes(whole) / _bytes(parameters)
        least = _LEAST_LARGE * max(num_bytes(each.type) for each in parameters)
        for each in whole if part >= _LEAST_SHARDED else ():
            if num_bytes(each.type) >= least:
                yield _suspicion(program, candidates, AxisRef(name), part, each)


def _suspicion(
    program: LintedProgram, candidates: Candidates, axis: AxisRef, part: float, parameter: BlockArgument
) -> Suspicion:
    before, size = value_dims(parameter), axis.size_in(program.mesh)
    local = sum(program.local_bytes(each, get_sharding(each)) for each in candidates.with_state(parameter))
    return Suspicion(
        parameter,
        f"{program.called(parameter)}, {parameter.type}, is replicated over axis {axis}, which shards the batch and "
        f"{part:.0%} of the bytes of {tree(parameter)}",
        "",
        [GivenBy(parameter)],
        held=local - local // size,
        cures=[
            Cure(tuple(candidates.shard(each, dims) for each in candidates.in_layers(parameter)))
            for dims in candidates.extended(parameter, before)
            if any(axis in axes for axes in dims)
        ],
    )


def _axes(argument: BlockArgument) -> set[str]:
    return {axis.name for axes in value_dims(argument) for axis in axes}


def _bytes(arguments: Iterable[BlockArgument]) -> int:
    return sum(num_bytes(each.type) for each in arguments)
