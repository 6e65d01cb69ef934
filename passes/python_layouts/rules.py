"""The fewest patterns of paths that tell the shardings of all arrays apart.

A pattern matches an array whose path ends as the pattern says; `*` stands for any text. The first pattern that matches
decides, as in `{"q_proj/kernel": P("data", "model"), "*": P()}`.
"""

import glob
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Generic, NamedTuple, TypeVar

from sdy.passes.python_layouts.paths import Keys, joined

ValueT = TypeVar("ValueT")

_NUMBER = re.compile(r"\d+")

EVERYTHING = "*"

_DEFAULTS = 3
"""The number of the most common values that are tried as that of everything else: each value needs a rule otherwise."""


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
    if not items:
        return {}
    values = Counter(item.value for item in items)
    examined = _examples(items)
    while True:
        matched = _matched(examined)
        found = [_rules_with_default(examined, matched, value) for value, _ in values.most_common(_DEFAULTS)]
        rules = min(found, key=lambda each: (len(each), -values[each[EVERYTHING]]))
        wrong = [item for item in items if value_of(rules, joined(item.keys)) != item.value]
        if not wrong:
            return rules
        examined = [*examined, *_examples(wrong)]


def value_of(rules: Mapping[str, ValueT], path: str) -> ValueT:
    """Return the value of the first pattern that matches `path`."""
    return next(value for pattern, value in rules.items() if matches(pattern, path))


def _examples(items: Sequence[Item[ValueT]]) -> Sequence[Item[ValueT]]:
    """Return the items that the search for rules looks at first.

    Of those that differ in numbers alone, they are the first and the last one, or all if their values differ.
    """
    alike: dict[str, list[Item[ValueT]]] = {}
    for item in items:
        alike.setdefault(_NUMBER.sub("#", joined(item.keys)), []).append(item)
    return [
        item
        for group in alike.values()
        for item in (group if len({each.value for each in group}) > 1 else dict.fromkeys((group[0], group[-1])))
    ]


_Places = int
"""A set of items, with the bits at their places."""


def _matched(items: Sequence[Item[ValueT]]) -> Mapping[str, _Places]:
    """Return the items that each pattern matches, the patterns in the order of preference between equally good ones."""
    paths = [joined(item.keys) for item in items]
    patterns = {pattern for item in items for pattern in _patterns(item.keys)} - {EVERYTHING}
    in_order = sorted(patterns, key=lambda each: (each.count("/"), each.count("*"), each))
    return {each: _places(matches(each, path) for path in paths) for each in in_order}


def _places(is_in: Iterable[bool]) -> _Places:
    return sum(1 << place for place, each in enumerate(is_in) if each)


def _rules_with_default(
    items: Sequence[Item[ValueT]], matched: Mapping[str, _Places], default: ValueT
) -> dict[str, ValueT]:
    """Return rules whose last one gives `default` to everything else, by repeatedly taking the best pattern.

    The best pattern matches items of one value, if possible, other than the default, and of these most items.
    """
    of_value = {value: _places(item.value == value for item in items) for value in {item.value for item in items}}
    left = (1 << len(items)) - 1
    rules: dict[str, ValueT] = {}

    def preference(pattern: str) -> tuple[bool, bool, int]:
        found = matched[pattern] & left
        first = items[(found & -found).bit_length() - 1].value
        return bool(found & ~of_value[first]), bool(found & of_value.get(default, 0)), -found.bit_count()

    while left & ~of_value.get(default, 0):
        matched = {pattern: places for pattern, places in matched.items() if places & left}
        pattern = min(matched, key=preference)
        last = (matched[pattern] & left).bit_length() - 1
        rules[pattern] = items[last].value
        left &= ~matched[pattern]
    return {**rules, EVERYTHING: default}


def _patterns(keys: Keys) -> Iterator[str]:
    """Yield the patterns that match these keys: their ends, their beginnings and parts between, numbers as `*`."""
    literal = [glob.escape(key) for key in keys]
    general = [_NUMBER.sub("*", glob.escape(key)) if "[" not in key else glob.escape(key) for key in keys]
    for form in dict.fromkeys((tuple(general), tuple(literal))):
        for start in range(len(form)):
            for end in range(start + 1, len(form) + 1):
                yield joined(form[start:end] if end == len(form) else (*form[start:end], "*"))
