"""The arguments of one layer are sharded differently from those of its siblings.

Arguments are siblings if their paths differ in numbers only, as `params[0]["up"]` and `params[1]["up"]` do, or if one
of another path has their type and ends alike, as `params["last"]["up"]` does. The layout of the others is tried for
those that differ, and reported where it saves bytes, memory or time.

Before::

    for number, layer in enumerate(params):
        layer["up"] = jax.device_put(layer["up"], P("model", None) if number == 3 else P(None, "model"))

After::

    for layer in params:
        layer["up"] = jax.device_put(layer["up"], P(None, "model"))
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from xdsl.ir import Attribute, BlockArgument

from sdy.dialect.shardings import get_sharding
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, value_dims
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
    layers: dict[tuple[str, ...], dict[BlockArgument, BlockArgument]] = {}
    for siblings in (*candidates.families, *_other_layers(candidates.families)):
        counts = Counter(map(value_dims, siblings))
        for argument in siblings if len(counts) > 1 else ():
            dims = value_dims(argument)
            usual = max(counts, key=lambda each: (counts[each], each != dims))
            if dims != usual and (len(siblings) == 2 or counts[dims] <= _MOST_DIFFERENT * len(siblings)):
                other = next(each for each in siblings if value_dims(each) == usual)
                layers.setdefault(_layer(argument, other), {})[argument] = other
    for arguments in layers.values():
        first, usual = next(iter(arguments.items()))
        names = several([program.names[each.index] for each in arguments])
        yield Suspicion(
            first,
            f"{names}, {first.type}, {'are' if len(arguments) > 1 else 'is'} {sharded_as(get_sharding(first))}, but "
            f"the same in other layers, such as {program.names[usual.index]}, {sharded_as(get_sharding(usual))}",
            "",
            [GivenBy(first)],
            held=sum(num_bytes(each.type) for each in arguments),
            cures=[Cure(tuple(candidates.shard(each, value_dims(other)) for each, other in arguments.items()))],
        )


def _other_layers(families: Iterable[Sequence[BlockArgument]]) -> Iterator[Sequence[BlockArgument]]:
    """Yield arguments of stacks of layers, each with one argument of a layer outside whose path ends alike."""
    by_end: dict[tuple[str, Attribute], list[Sequence[BlockArgument]]] = {}
    for family in families:
        if len(path := _path(family[0])) > 1:
            by_end.setdefault((path[-1], family[0].type), []).append(family)
    for alike in by_end.values():
        stacks = [family for family in alike if len(family) > 1]
        for argument, *others in alike if stacks else ():
            nearest = max(stacks, key=lambda stack: _shared(argument, stack[0]))
            if not others and _shared(argument, nearest[0]):
                yield [*nearest, argument]


def _path(argument: BlockArgument) -> list[str]:
    """Return the keys and numbers in the path of an argument."""
    return re.findall(r"\w+", given_name(argument))


def _shared(argument: BlockArgument, other: BlockArgument) -> int:
    """Return the number of keys with which the paths of two arguments begin alike."""
    pairs = zip(_path(argument), _path(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _layer(argument: BlockArgument, sibling: BlockArgument) -> tuple[str, ...]:
    """Return the part of the path of an argument that differs from that of a sibling; its index without a path."""
    if not given_name(argument):
        return (str(argument.index),)
    own, other = _path(argument), _path(sibling)
    if len(own) != len(other):
        return (*own[_shared(argument, sibling) : -1],)
    return tuple(key for key, its in zip(own, other, strict=True) if key != its)
