"""Operations with a mistake are refused if and only if MLIR refuses them, with its messages and locations."""

import re
from random import Random

import pytest

from oracle import OracleError, oracle
from random_operations import FAMILIES, chlo, dynamic_shapes, elementwise, shapes
from samples import sample
from sdy.diagnostics import DiagnosticError
from sdy.text import parse
from vague_sizes import with_vague_sizes
from wrong_operations import with_mistakes
from wrong_regions import has_region, with_wrong_region

_COUNT = len(sample(range(6), one_in=6))
"""Number of operations compared per family."""

_NEWER = "collective_broadcast"
"""An operation that newer versions of StableHLO check differently from jaxlib's."""

_OF_VAGUE_SIZES = [
    name
    for name, family in FAMILIES.items()
    if family.__module__ in {module.__name__ for module in (chlo, dynamic_shapes, elementwise, shapes)}
    and family is not shapes.concatenate  # its operands are not arguments
]
"""Families also compared with dynamic and bounded dimensions."""


def mlir_error(text: str) -> str | None:
    """Return MLIR's first error for `text` with its line and column, or None."""
    try:
        oracle(text)
    except OracleError as problem:
        found = re.search(r'^error: "-":(.*)$', str(problem), re.MULTILINE)
        return found[1] if found else str(problem)
    return None


def our_error(text: str) -> str | None:
    try:
        parse(text)
    except DiagnosticError as problem:
        place = str(problem.where).removeprefix("<stdin>:")
        return f"{place}: {problem.message}"
    return None


@pytest.mark.parametrize("family", FAMILIES)
def test_mistakes_give_mlir_messages(family: str) -> None:
    rng = Random(family)
    for _ in range(_COUNT):
        text = with_mistakes(FAMILIES[family](rng), rng).replace("@NAME", "@f")
        if _NEWER not in text:
            assert our_error(text) == mlir_error(text), text


@pytest.mark.parametrize("family", _OF_VAGUE_SIZES)
def test_vague_sizes_are_told_as_mlir_tells_them(family: str) -> None:
    rng = Random(family)
    for number in range(_COUNT):
        function = FAMILIES[family](rng)
        if number % 2:
            function = with_mistakes(function, rng)
        text = with_vague_sizes(function, rng).replace("@NAME", "@f")
        assert our_error(text) == mlir_error(text), text


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if has_region(family(Random(0)))])
def test_mistakes_in_regions_are_told_as_mlir_tells_them(family: str) -> None:
    rng = Random(family)
    for _ in range(2 * _COUNT):
        text = with_wrong_region(FAMILIES[family](rng), rng).replace("@NAME", "@f")
        assert our_error(text) == mlir_error(text), text


def test_constants_are_verified_for_each_operation() -> None:
    """Two operations that differ only in the constants that they use are verified separately."""
    type_ = "(tensor<8xf32>, tensor<2xi32>) -> tensor<2x4xf32>"
    text = f"""
    func.func @f(%a: tensor<8xf32>) {{
      %b = stablehlo.constant dense<[2, 4]> : tensor<2xi32>
      %0 = stablehlo.dynamic_reshape %a, %b : {type_}
      %c = stablehlo.constant dense<[4, 2]> : tensor<2xi32>
      %1 = stablehlo.dynamic_reshape %a, %c : {type_}
      return
    }}"""
    told = "6:12: output shape [4, 2] is incompatible with return type of operation 'tensor<2x4xf32>'"
    assert our_error(text) == mlir_error(text) == told
