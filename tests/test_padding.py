"""Dimensions that their axes do not divide: partitioned programs compute what one device does."""

# jax does not declare all of its types.
# pyright: basic

from partitioned_programs import Argument, lower, split
from sdy.diagnostics import capture
from sdy.passes.driver import partition, propagate


def test_what_is_computed_whole_is_told():
    module = lower(split(lambda x: x.reshape(-1)), Argument((13, 7)))
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reshape' op is computed whole along the dimensions in which elements change devices "
        "(each device receives 252 bytes more and makes 272 bytes more)"
    ]
