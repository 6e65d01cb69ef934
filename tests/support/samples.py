"""Samples of the cases of large tests, and all cases with `pytest --thorough`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

_SAMPLE, _THOROUGH = "sample", "thorough"
settings.register_profile(_SAMPLE, max_examples=10, deadline=None)
settings.register_profile(_THOROUGH, max_examples=100, deadline=None)


_is_before_landing = False


def choose(thorough: bool, before_landing: bool = False) -> None:
    """Choose between all cases and samples for the test modules that are imported afterwards."""
    global _is_before_landing
    settings.load_profile(_THOROUGH if thorough else _SAMPLE)
    _is_before_landing = before_landing


def is_thorough() -> bool:
    """Return whether `pytest --thorough` runs all cases."""
    return settings.default == settings.get_profile(_THOROUGH)


def is_before_landing() -> bool:
    """Return whether the cases run that `.ci/run` adds to the samples, which `--thorough` contains."""
    return _is_before_landing or is_thorough()


def sample(cases: Iterable[T], one_in: int = 8) -> Sequence[T]:
    """Return every `one_in`-th of `cases`, or all of them with `--thorough`."""
    return [*cases][:: 1 if is_thorough() else one_in]


covering = pytest.mark.covering
"""Decorator of a test with several parameters: runs enough combinations that each value occurs, or all `--thorough`."""


large = pytest.mark.large
"""Decorator of a test that takes long and whose kind others check as well: it runs with `--thorough` only."""


def deselected(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the items of tests marked as `covering` or `large` that do not run."""
    items = [*items] if not is_thorough() else []
    by_test: defaultdict[str, dict[pytest.Item, Sequence[str]]] = defaultdict(dict)
    for item in items:
        if item.get_closest_marker(covering.name):
            assert isinstance(item, pytest.Function)
            # One identifier for each `parametrize`, unique among its own.
            values = item.callspec._idlist  # pyright: ignore[reportPrivateUsage]
            by_test[item.nodeid.partition("[")[0]][item] = values
    others = {item for values in by_test.values() for item in values.keys() - _cover(values)}
    return {item for item in items if item in others or item.get_closest_marker(large.name)}


def _cover(values: Mapping[pytest.Item, Sequence[str]]) -> set[pytest.Item]:
    """Return the items with the n-th value of each parameter for some n, modulo the number of its values."""
    numbers = [{value: n for n, value in enumerate(dict.fromkeys(each))} for each in zip(*values.values(), strict=True)]
    return {
        item
        for item, each in values.items()
        for n in range(max(map(len, numbers)))
        if all(of[value] == n % len(of) for of, value in zip(numbers, each, strict=True))
    }
