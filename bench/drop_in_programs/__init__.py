"""Programs for bench/drop_in.py: the tests' corpus, and programs written with libraries of the jax ecosystem."""

from functools import partial
from importlib import import_module

from corpus import PROGRAMS as CORPUS
from placed import Build, of_corpus

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
"""The modules of this package, each with a table of programs."""


def names() -> list[str]:
    """Return the names of all programs, each as `theme: name` or `corpus, name`."""
    return [
        *(f"{theme}: {name}" for theme in _LIBRARIES for name in _table(theme)),
        *(f"corpus, {name}" for name in CORPUS),
    ]


def build(name: str) -> Build:
    """Return the function that builds the program `name`. Only the libraries of its theme are imported."""
    theme, _, rest = name.partition(": ")
    return _table(theme)[rest] if theme in _LIBRARIES else partial(of_corpus, CORPUS[name.removeprefix("corpus, ")])


def _table(theme: str) -> dict[str, Build]:
    return import_module(f"{__name__}.{theme}").PROGRAMS
