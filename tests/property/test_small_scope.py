"""A sample of all small programs in all shardings; `python -m small_scope.campaign` checks more."""

from itertools import islice, product
from math import prod

import numpy as np
import pytest

import sdy
from samples import sample
from sdy.ir.shapes import shape_of
from sdy.passes.common.call_graph import main_function
from small_scope.campaign import OPERATIONS
from small_scope.check import Checker, verdict_on_propagated
from small_scope.choices import Choices, NoCaseError, every, some
from small_scope.found import FOUND
from small_scope.program import Program
from small_scope.shardings import MESHES, splits

SEED = 20
"""Seed of the sample."""

COUNT = len(sample(range(5), one_in=5))
"""Number of cases of each operation on each mesh."""


@pytest.mark.parametrize("operation", sample(OPERATIONS, one_in=6))
def test_a_sample_computes_what_the_whole_does(operation: str) -> None:
    check = Checker()
    for name, mesh in MESHES.items():

        def make(choices: Choices, mesh: sdy.Mesh = mesh) -> Program:
            return OPERATIONS[operation](Program(choices, mesh))

        for case in islice(some(make, f"{SEED} {operation} {name}"), COUNT):
            verdict = check(case)
            assert verdict.kind in ("right", "seen"), f"{verdict.kind}: {verdict.why}\n{case.text}"


@pytest.mark.parametrize("name", FOUND)
def test_regression_cases_compute_the_unpartitioned_results(name: str) -> None:
    module = sdy.parse(FOUND[name])
    shapes = [shape_of(argument) for argument in main_function(module).args]
    choices = [
        [np.arange(100 * index, 100 * index + prod(shape), dtype=np.int32).reshape(shape)]
        if shape
        else [np.asarray(number, np.int32) for number in (0, 1, 3, 6, -2)]
        for index, shape in enumerate(shapes)
    ]
    inputs = list(product(*choices))
    whole = [sdy.interpret(module, *arrays) for arrays in inputs]
    sdy.propagate(module)
    assert verdict_on_propagated(module, inputs, whole).kind == "right"


def test_every_choice_is_made_once() -> None:
    def make(choices: Choices) -> tuple[int, ...]:
        first = choices.below(3)
        if first == 1:
            raise NoCaseError
        return (first, *(choices.below(2) for _ in range(first)))

    assert list(every(make)) == [(0,), (2, 0, 0), (2, 0, 1), (2, 1, 0), (2, 1, 1)]


def test_splits_are_all_that_are_valid() -> None:
    mesh = sdy.Mesh.of({"x": 4})
    assert {tuple(map(str, axes)) for (axes,) in splits(mesh, 1)} == {
        (), ('"x"',), ('"x":(1)2',), ('"x":(2)2',), ('"x":(2)2', '"x":(1)2'),
    }  # fmt: skip
    assert len(set(splits(mesh, 2))) == len(splits(mesh, 2)) == 1 + 2 * 3 + 2 + 2
