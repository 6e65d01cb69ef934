"""The arguments of one layer are sharded differently from those of its siblings.

Arguments are siblings if their paths differ in numbers only, as `params[0]["up"]` and `params[1]["up"]` do. The layout
of the others is tried for those that differ, and reported where it saves bytes, memory or time.

Before::

    for number, layer in enumerate(params):
        layer["up"] = jax.device_put(layer["up"], P("model", None) if number == 3 else P(None, "model"))

After::

    for layer in params:
        layer["up"] = jax.device_put(layer["up"], P(None, "model"))
"""

import re
from collections import Counter
from collections.abc import Iterator

from xdsl.ir import BlockArgument

from sdy.dialect.shardings import get_sharding
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, Dims, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import sharded_as
from sdy.passes.account.name_lists import several
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.properties import num_bytes

_MOST_DIFFERENT = 1 / 3
"""The part of the layers that may differ from the others: layouts of every other layer alternate."""


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find the arguments of a layer with other layouts than most of their siblings."""
    candidates = Candidates(program)
    layers: dict[tuple[str, ...], dict[BlockArgument, Dims]] = {}
    for siblings in candidates.families:
        counts = Counter(map(value_dims, siblings))
        for argument in siblings if len(counts) > 1 else ():
            dims = value_dims(argument)
            usual = max(counts, key=lambda each: (counts[each], each != dims))
            if dims != usual and (len(siblings) == 2 or counts[dims] <= _MOST_DIFFERENT * len(siblings)):
                other = next(each for each in siblings if value_dims(each) == usual)
                layers.setdefault(_layer(argument, other), {})[argument] = usual
    for arguments in layers.values():
        first, *_ = arguments
        names = several([program.names[each.index] for each in arguments])
        usual = next(each for each in candidates.siblings(first) if value_dims(each) == arguments[first])
        yield Suspicion(
            first,
            f"{names}, {first.type}, {'are' if len(arguments) > 1 else 'is'} {sharded_as(get_sharding(first))}, but "
            f"the same in other layers, such as {program.names[usual.index]}, {sharded_as(get_sharding(usual))}",
            "",
            [GivenBy(first)],
            held=sum(num_bytes(each.type) for each in arguments),
            cures=[Cure(tuple(candidates.shard(each, dims) for each, dims in arguments.items()))],
        )


def _layer(argument: BlockArgument, sibling: BlockArgument) -> tuple[str, ...]:
    """Return the numbers in the path of an argument that differ from those of a sibling; its index without a path."""
    if not given_name(argument):
        return (str(argument.index),)
    numbers = (re.findall(r"\d+", given_name(each)) for each in (argument, sibling))
    return tuple(own for own, other in zip(*numbers, strict=True) if own != other)
