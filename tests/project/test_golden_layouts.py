"""Every program of the corpus has the shardings and the costs in tests/golden.

A review thus shows each sharding that a change of the compiler alters, and its cost.
`SDY_GOLDEN=update pytest --thorough tests/project/test_golden_layouts.py` regenerates the files, with jax 0.10: newer
versions lower programs to other operations.
"""

import re
from pathlib import Path

import jax
import pytest

import sdy
from corpus import PROGRAMS
from samples import is_before_landing, sample
from sdy.diagnostics import capture

GOLDEN = Path(__file__).parents[1] / "golden"
MOST_BYTES = 1_000_000


def file_of(name: str) -> Path:
    return GOLDEN / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.json"


@pytest.mark.skipif(not jax.__version__.startswith("0.10."), reason="the files are of what jax 0.10 lowers programs to")
@pytest.mark.parametrize("name", PROGRAMS if is_before_landing() else sample(PROGRAMS, one_in=25))
def test_a_program_lies_as_it_did(name: str) -> None:
    jax.clear_caches()  # else functions of jax have the locations of another test that called them first
    with capture():
        sdy.check_golden(file_of(name), PROGRAMS[name].module())


def test_each_file_is_of_one_program() -> None:
    assert sorted(GOLDEN.iterdir()) == sorted({file_of(name) for name in PROGRAMS})
    assert len(PROGRAMS) == len({file_of(name) for name in PROGRAMS})


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < MOST_BYTES
