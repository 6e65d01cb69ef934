"""The names that a policy looks for, read from its code."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from inspect import getclosurevars, isfunction, signature
from types import CodeType
from typing import Any, cast

from sdy.passes.policy.split import split

_NAME = re.compile(r"[\w.*?\[\]^$|+()\\-]+")
"""A name of an operation, or a pattern of names: no sentence."""
_SIMILARITY, _MOST = 0.5, 3


def unmatched_patterns(policy: Any, names: Iterable[str], axes: AbstractSet[str]) -> list[str]:
    """Return the names and patterns in the code of `policy`, and in variables that it reads, which match no name.

    Strings that are axes of a mesh, or arguments of `sdy.split`, are no patterns.
    """
    known, others = [*names], axes | {*signature(split).parameters}
    found = dict.fromkeys(_strings(policy))
    return [each for each in found if _NAME.fullmatch(each) and each not in others and not _matches(each, known)]


def close_names(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that are most similar to `pattern`, or contain it."""
    known, bare = [*names], pattern.strip("*^$.?")
    containing = [name for name in known if bare and bare.lower() in name.lower()]
    return [*dict.fromkeys([*containing, *get_close_matches(bare, known, _MOST, _SIMILARITY)])][:_MOST]


def _matches(pattern: str, names: Iterable[str]) -> bool:
    is_affix = not (pattern[0].isalnum() and pattern[-1].isalnum())
    return any(name == pattern or fnmatchcase(name, pattern) or (is_affix and pattern in name) for name in names)


def _strings(policy: Any) -> Iterator[str]:
    """Yield the strings in the code of a policy, without docstrings, and in the variables and arguments around it."""
    if isinstance(policy, partial):
        yield from _strings_in((*policy.args, *policy.keywords.values()))
        yield from _strings(policy.func)
    elif isfunction(policy):
        yield from _constants(policy.__code__, policy.__doc__)
        variables = getclosurevars(policy)
        yield from _strings_in((*variables.nonlocals.values(), *variables.globals.values()))
    elif isfunction(call := type(policy).__call__):
        yield from _strings_in(tuple(getattr(policy, "__dict__", {}).values()))
        yield from _strings(call)


def _constants(code: CodeType, docstring: str | None) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant, None)
        elif constant != docstring:
            yield from _strings_in(constant)


def _strings_in(value: object) -> Iterator[str]:
    """Yield a string, the text of a regular expression, or those in a collection: the keys of a mapping."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, re.Pattern):
        yield from _strings_in(cast("re.Pattern[str]", value).pattern)
    elif isinstance(value, Mapping | tuple | list | set | frozenset):
        for each in cast(Iterable[object], value):
            yield from _strings_in(each)
