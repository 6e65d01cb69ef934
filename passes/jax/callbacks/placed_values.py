"""Conversion of the shardings of values in a program to jax."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from jax.sharding import NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.dialect.meshes import mesh_of, named_meshes
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank
from sdy.passes.jax.device_mesh import Device, DeviceMesh, PlacedSharding
from sdy.sharding import DimSharding, TensorSharding


def placed_values(module: ModuleOp, values: Sequence[SSAValue], devices: Sequence[Device]) -> list[NamedSharding]:
    """Return the shardings of `values` in `module`, a program for `devices`, with one spec entry per dimension.

    jax cannot express sub-axes: a dimension is reported as sharded along the full axes before its first sub-axis.
    Raises DiagnosticError if no jax mesh expresses the meshes of `module`.
    """
    meshes = [mesh for mesh in named_meshes(module).values() if mesh.axes]
    grid = DeviceMesh.over(devices, meshes, (), module)
    return [_of_rank(grid.named_sharding(_placed(get_sharding(value), module)), rank(value.type)) for value in values]


def _of_rank(sharding: NamedSharding, rank: int) -> NamedSharding:
    return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec, *[None] * (rank - len(sharding.spec))))


def _placed(sharding: TensorSharding | None, module: ModuleOp) -> PlacedSharding | None:
    if sharding is None or (mesh := mesh_of(sharding, module)).is_maximal:
        return None
    dims = [DimSharding(tuple(takewhile(lambda axis: axis.is_full, axes))) for axes in sharding.dim_axes]
    return PlacedSharding(replace(sharding, dims=tuple(dims)), mesh)
