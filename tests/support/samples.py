"""Samples of the cases of large tests, and all cases with `pytest --thorough`."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

_SAMPLE, _THOROUGH = "sample", "thorough"
settings.register_profile(_SAMPLE, max_examples=20, deadline=None)
settings.register_profile(_THOROUGH, max_examples=200, deadline=None)


def choose(thorough: bool) -> None:
    """Choose between all cases and samples for the test modules that are imported afterwards."""
    settings.load_profile(_THOROUGH if thorough else _SAMPLE)


def is_thorough() -> bool:
    """Return whether `pytest --thorough` runs all cases."""
    return settings.default == settings.get_profile(_THOROUGH)


def sample(cases: Iterable[T], one_in: int = 5) -> Sequence[T]:
    """Return every `one_in`-th of `cases`, or all of them with `--thorough`."""
    return [*cases][:: 1 if is_thorough() else one_in]
