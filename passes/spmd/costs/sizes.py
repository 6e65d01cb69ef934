"""How large values are."""

from xdsl.ir import SSAValue

from sdy.passes.common.num_bytes import num_bytes


def value_bytes(value: SSAValue) -> int:
    """The bytes of a tensor, each element taking at least one; a value of another type, such as a token, takes none."""
    return num_bytes(value.type)
