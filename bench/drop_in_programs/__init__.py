"""Programs for bench/drop_in.py: all of the tests' corpus, and ones that people write with the libraries of jax."""

from functools import partial
from importlib import import_module

from placed import Build, of_corpus

from corpus import PROGRAMS as CORPUS

_LIBRARIES = (
    "optimizers",
    "flax_nnx",
    "flax_linen",
    "equinox_models",
    "haiku_models",
    "language_models",
    "sequences_and_experts",
    "differential_equations",
    "probability",
    "reinforcement",
    "tables_and_graphs",
)
"""The modules beside this one, each with a table of programs."""


def names() -> list[str]:
    """The names of all programs: the theme of each, and what it does."""
    return [
        *(f"{theme}: {name}" for theme in _LIBRARIES for name in _table(theme)),
        *(f"corpus, {name}" for name in CORPUS),
    ]


def build(name: str) -> Build:
    """What makes the program of this name; no other theme's libraries are imported."""
    theme, _, rest = name.partition(": ")
    return _table(theme)[rest] if theme in _LIBRARIES else partial(of_corpus, CORPUS[name.removeprefix("corpus, ")])


def _table(theme: str) -> dict[str, Build]:
    return import_module(f"{__name__}.{theme}").PROGRAMS
