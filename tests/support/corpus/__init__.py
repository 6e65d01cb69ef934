"""Typical JAX programs by theme, each small enough to compile in a moment."""

from corpus import (
    beyond_xla,
    convolutions,
    decoding,
    indexing,
    linear_algebra,
    loops,
    numbers,
    ordering,
    shapes,
    spectra,
    training,
    uneven,
)
from partitioned_programs import Program

_THEMES = {
    "training": training,
    "decoding": decoding,
    "convolutions": convolutions,
    "loops": loops,
    "linear algebra": linear_algebra,
    "spectra": spectra,
    "ordering": ordering,
    "indexing": indexing,
    "numbers": numbers,
    "shapes": shapes,
    "uneven": uneven,
    "beyond XLA": beyond_xla,
}

PROGRAMS: dict[str, Program] = {
    f"{theme}: {name}": program for theme, module in _THEMES.items() for name, program in module.PROGRAMS.items()
}
"""All programs by name, "theme/program"."""
