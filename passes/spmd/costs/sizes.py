"""Sizes of values in bytes."""

from xdsl.ir import SSAValue

from sdy.passes.common.properties import num_bytes


def value_bytes(value: SSAValue) -> int:
    """Return the bytes of a tensor, at least one per element; 0 for a value of another type, such as a token."""
    return num_bytes(value.type)
