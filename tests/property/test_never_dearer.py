"""Devices receive no more bytes with `sdy.jit` than with `jax.jit`, in a sample of `python -m dearer.campaign`."""

import pytest

from dearer.campaign import FAMILIES, draw
from dearer.case import MESHES
from dearer.measure import measure
from samples import sample

SEED = 0


@pytest.mark.parametrize("family", sample(FAMILIES, one_in=6))
def test_a_program_receives_no_more_than_under_jax_jit(family: str) -> None:
    turn = [*FAMILIES].index(family)
    meshes = sample([*MESHES][turn % len(MESHES) :] + [*MESHES][: turn % len(MESHES)], one_in=3)
    cases = [case for mesh in meshes for case in draw(family, mesh, SEED, count=1)]
    problems = {case.text: measured.problem for case in cases if (measured := measure(case)).problem}
    assert not problems
