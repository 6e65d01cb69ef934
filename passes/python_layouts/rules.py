"""The fewest patterns of paths that tell the shardings of all arrays apart.

A pattern matches an array whose path ends as the pattern says; `*` stands for any text. The first pattern that matches
decides, as in `{"q_proj/kernel": P("data", "model"), "*": P()}`.
"""

import glob
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Generic, NamedTuple, TypeVar

from sdy.passes.python_layouts.paths import Keys, joined

ValueT = TypeVar("ValueT")

_NUMBER = re.compile(r"\d+")

EVERYTHING = "*"


class Item(NamedTuple, Generic[ValueT]):
    """The keys of an array, and its value."""

    keys: Keys
    value: ValueT


def matches(pattern: str, path: str) -> bool:
    """Return whether `path` ends as `pattern` says; printed files do the same."""
    return fnmatchcase(f"/{path}", f"*/{pattern}")


def find_rules(items: Sequence[Item[ValueT]]) -> Mapping[str, ValueT] | None:
    """Return a value for each pattern, such that the first pattern that matches an item has its value.

    Returns None if two items with the same path have different values.
    """
    by_path: dict[str, ValueT] = {}
    for keys, value in items:
        if by_path.setdefault(joined(keys), value) != value:
            return None
    # Items that differ in numbers alone and have one value are equal to the search: two of them stand for all.
    for alike in (True, False):
        examined = _examples(items) if alike else items
        values = Counter(item.value for item in items)
        found = [_rules_with_default(examined, value) for value in values]
        if not found:
            return {}
        rules = min(found, key=lambda each: (len(each), -values[each[EVERYTHING]]))
        if all(value_of(rules, path) == value for path, value in by_path.items()):
            return rules
    raise AssertionError("an item has another value than its rule")


def value_of(rules: Mapping[str, ValueT], path: str) -> ValueT:
    """Return the value of the first pattern that matches `path`."""
    return next(value for pattern, value in rules.items() if matches(pattern, path))


def _examples(items: Sequence[Item[ValueT]]) -> Sequence[Item[ValueT]]:
    """Return the first and the last item of those that differ in numbers alone; all of them if their values differ."""
    alike: dict[str, list[Item[ValueT]]] = {}
    for item in items:
        alike.setdefault(_NUMBER.sub("#", joined(item.keys)), []).append(item)
    return [
        item
        for group in alike.values()
        for item in (group if len({each.value for each in group}) > 1 else dict.fromkeys((group[0], group[-1])))
    ]


def _rules_with_default(items: Sequence[Item[ValueT]], default: ValueT) -> dict[str, ValueT]:
    """Return rules whose last one gives `default` to everything else, by repeatedly taking the widest pattern."""
    paths = [joined(item.keys) for item in items]
    matched = {
        pattern: frozenset(index for index, path in enumerate(paths) if matches(pattern, path))
        for item in items
        for pattern in _patterns(item.keys)
        if pattern != EVERYTHING
    }
    left = set(range(len(items)))
    rules: dict[str, ValueT] = {}
    while any(items[index].value != default for index in left):
        pattern = min(matched, key=lambda each: _preference(each, matched[each] & left, items, default))
        for index in matched[pattern] & left:
            rules[pattern] = items[index].value
        left -= matched[pattern]
    return {**rules, EVERYTHING: default}


def _preference(pattern: str, found: frozenset[int] | set[int], items: Sequence[Item[ValueT]], default: ValueT):
    """Return the key by which patterns are sorted: those of one value, other than the default, of most items first."""
    values = {items[index].value for index in found}
    is_of_one = len(values) == 1
    is_default = default in values
    return not is_of_one, is_default, -len(found), pattern.count("/"), pattern.count("*"), pattern


def _patterns(keys: Keys) -> Iterator[str]:
    """Yield the patterns that match these keys: their ends, their beginnings and parts between, numbers as `*`."""
    literal = [glob.escape(key) for key in keys]
    general = [_NUMBER.sub("*", glob.escape(key)) if "[" not in key else glob.escape(key) for key in keys]
    for form in dict.fromkeys((tuple(general), tuple(literal))):
        for start in range(len(form)):
            for end in range(start + 1, len(form) + 1):
                yield joined(form[start:end] if end == len(form) else (*form[start:end], "*"))
