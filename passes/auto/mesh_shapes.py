"""The shapes of meshes that so many devices can make."""

from collections.abc import Sequence

from sdy.mesh import Mesh

_MOST_MINOR = 16
"""More devices than these are hardly connected closely enough for the minor axis."""


def mesh_shapes(devices: int) -> Sequence[Mesh]:
    """One axis, `data`, or two, `data` and `model`, of which the minor one has at most 16 devices."""
    minor = [size for size in range(2, min(devices // 2, _MOST_MINOR) + 1) if devices % size == 0]
    return [
        Mesh.of({"data": devices}),
        *(Mesh.of({"data": devices // size, "model": size}) for size in minor),
    ]
