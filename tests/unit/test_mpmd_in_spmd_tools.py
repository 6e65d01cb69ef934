"""Functions for programs on one mesh reject programs of the MPMD dialect."""

from collections.abc import Callable
from typing import Any

import pytest

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.build import block_graph

TEXT = """
sdy.mesh @mesh = <["data"=2]>
!a = !mpmd.mesh_tensor<"a", tensor<8xf32>>
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
  return %x : tensor<8xf32>
}
func.func public @main(%x: !a) -> !a attributes {topology = #mpmd.topology<<"a" : <["data"=2]>>>} {
  %0 = mpmd.fragment_call<mesh="a", origin=["stage0"]> @f(%x) : (!a) -> !a
  return %0 : !a
}
"""

FUNCTIONS: dict[str, Callable[[Any], object]] = {
    "account": sdy.account,
    "auto": lambda module: sdy.auto(module, hardware="h100"),
    "block_graph": lambda module: block_graph(module, within(1 << 20)),
    "compile": sdy.compile,
    "interpret": sdy.interpret,
    "lint": sdy.lint,
    "partition": sdy.partition,
    "propagate": sdy.propagate,
    "to_python": sdy.to_python,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_on_several_meshes_is_rejected(name: str):
    with pytest.raises(DiagnosticError, match=r"is on several meshes \(MPMD\), not one; sdy\.mpmd\.plan predicts"):
        FUNCTIONS[name](sdy.parse(TEXT))
