"""How much of what can be tested is tested: a sample, or all of it, which `pytest --thorough` asks for.

With a sample, all tests together end while one still knows what one has changed.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

_SAMPLE, _THOROUGH = "sample", "thorough"
settings.register_profile(_SAMPLE, max_examples=20, deadline=None)
settings.register_profile(_THOROUGH, max_examples=200, deadline=None)


def choose(thorough: bool) -> None:
    """Let what is imported from now on test all that it can, or a sample."""
    settings.load_profile(_THOROUGH if thorough else _SAMPLE)


def _is_thorough() -> bool:
    return settings.default == settings.get_profile(_THOROUGH)


def sample(cases: Iterable[T], one_in: int = 5) -> Sequence[T]:
    """One in so many of `cases`, or all."""
    return [*cases][:: 1 if _is_thorough() else one_in]
