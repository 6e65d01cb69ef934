"""Candidate mesh shapes for a number of devices."""

from collections.abc import Sequence

from sdy.mesh import Mesh

_MOST_MINOR = 16
"""Maximum size of the minor axis; more devices rarely share a fast interconnect."""


def mesh_shapes(devices: int) -> Sequence[Mesh]:
    """Return the candidate meshes: one axis, `data`, or two, `data` and `model`, with `model` of size at most 16."""
    minor = [size for size in range(2, min(devices // 2, _MOST_MINOR) + 1) if devices % size == 0]
    return [
        Mesh.of({"data": devices}),
        *(Mesh.of({"data": devices // size, "model": size}) for size in minor),
    ]
