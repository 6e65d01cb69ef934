"""Choice of the values to recompute: the limits that are reached."""

import pytest
from test_auto import transformer_step
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.ir.companions import clone_alone
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.remat.program import Rematerialized, rematerialize

_LIMITS = (0.8, 0.6, 0.5, 0.35)
"""Memory limits, as fractions of the memory without recomputation."""


@pytest.fixture(scope="module")
def local() -> ModuleOp:
    module = transformer_step(3, 64, 128, 256, 4)
    sdy.propagate(module)
    sdy.partition(module)
    return module


def test_each_limit_is_reached_and_tighter_ones_take_longer(local: ModuleOp) -> None:
    """Values that are dropped first are recomputed for copies that read them before their first read did."""
    needed = peak_bytes(local)
    found: list[Rematerialized] = []
    for fraction in _LIMITS:
        found.append(rematerialize(clone_alone(local), int(fraction * needed), hardware_of("h100")))
        assert found[-1].memory <= fraction * needed
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)
