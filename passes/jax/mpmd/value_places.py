"""The devices of the meshes of a topology, and the shardings of values on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding
from xdsl.dialects.builtin import ModuleOp

from sdy.array_types import array_type
from sdy.diagnostics import error
from sdy.mpmd import MeshTensorType
from sdy.mpmd.attribute_syntax import NamedMesh
from sdy.passes.jax.device_mesh import Device, DeviceMesh, PlacedSharding
from sdy.passes.jax.program.interface import Port


@dataclass(frozen=True)
class Place(Port):
    """The shape, the element type, the mesh and the sharding of a value."""

    mesh_name: str = ""

    @property
    def processes(self) -> frozenset[int]:
        """The processes whose devices have shards."""
        return frozenset(device.process_index for device in self.sharding.device_set)

    def placeholder(self) -> jax.Array:
        """Return an array without shards in this process, for a value whose devices other processes have."""
        return jax.make_array_from_single_device_arrays(self.shape, self.sharding, [], dtype=self.dtype)

    def put(self, value: Any) -> jax.Array:
        """Return an argument as an array with this sharding.

        Raises:
            TypeError: The argument, which the message names, is not an array or has another element type.
            ValueError: The argument, which the message names, has another shape.
        """
        array = self.check(value)
        if isinstance(array, jax.Array) and array.sharding.is_equivalent_to(self.sharding, array.ndim):
            return array
        if self.sharding.is_fully_addressable:
            return jax.device_put(array, self.sharding)
        return jax.make_array_from_callback(self.shape, self.sharding, lambda index: array[index], dtype=self.dtype)

    def byte_count(self) -> int:
        """Return the bytes of all shards."""
        shard = jax.ShapeDtypeStruct(self.sharding.shard_shape(self.shape), self.dtype)
        return shard.size * shard.dtype.itemsize * self.sharding.num_devices


def devices_of_meshes(
    topology: Sequence[NamedMesh], given: Mapping[str, jax.sharding.Mesh] | None, module: ModuleOp
) -> dict[str, tuple[Device, ...]]:
    """Return the devices of each mesh: those of the jax mesh of its name, or consecutive devices of `jax.devices()`.

    Raises:
        DiagnosticError: There are too few devices, or a jax mesh is missing or has other axes.
    """
    devices: dict[str, tuple[Device, ...]] = {}
    available, start = jax.devices(), 0
    for name, mesh in topology:
        if given is None:
            devices[name] = tuple(available[start : start + mesh.size])
            start += mesh.size
            continue
        if name not in given:
            raise error(module, f"no devices are given for the mesh {name!r} of the topology")
        if dict(given[name].shape) != dict(mesh.axes):
            axes, own = dict(given[name].shape), dict(mesh.axes)
            raise error(module, f"the given mesh {name!r} has the axes {axes}, but that of the topology has {own}")
        devices[name] = tuple(given[name].devices.flat)
    if start > len(available):
        raise error(module, f"the meshes have {start} devices, but there are only {len(available)}")
    return devices


def places_of(
    types: Sequence[MeshTensorType],
    names: Mapping[int, str],
    donated: frozenset[int],
    topology: Sequence[NamedMesh],
    devices: Mapping[str, Sequence[Device]],
    module: ModuleOp,
) -> list[Place]:
    """Return the place of each value, by its type; `names` and `donated` describe arguments and results."""
    meshes = {named.name: named.mesh for named in topology}

    def placed(type_: MeshTensorType) -> PlacedSharding | None:
        return None if type_.sharding is None else PlacedSharding(type_.sharding, meshes[type_.mesh])

    grids = {
        name: DeviceMesh.over(devices[name], [mesh], _shardings(types, name, placed), module)
        for name, mesh in meshes.items()
    }
    places: list[Place] = []
    for number, type_ in enumerate(types):
        grid = grids[type_.mesh]
        sharding: NamedSharding = grid.named_sharding(placed(type_))
        if type_.memory_kind is not None:
            sharding = sharding.with_memory_kind(type_.memory_kind)
        shape, dtype = array_type(type_.tensor, module)
        name = names.get(number, f"value {number}")
        places.append(Place(name, shape, dtype, sharding, sharding.spec, number in donated, type_.mesh))
    return places


def _shardings(types: Sequence[MeshTensorType], mesh: str, placed: Any) -> list[PlacedSharding]:
    found = (placed(type_) for type_ in types if type_.mesh == mesh)
    return [*dict.fromkeys(sharding for sharding in found if sharding is not None)]
