"""Split mesh axes into sub-axes of prime size."""

import math

from sdy.axes import AxisRef
from sdy.mesh import Mesh


def prime_pieces(axis: AxisRef, mesh: Mesh) -> list[AxisRef]:
    """Return the sub-axes of prime size that `axis` consists of, major to minor."""
    size = axis.size_in(mesh)
    factor = next((number for number in range(2, math.isqrt(size) + 1) if size % number == 0), size)
    if factor == size:
        return [axis]
    first, rest = axis.split(factor, mesh)
    return [first, *prime_pieces(rest, mesh)]
