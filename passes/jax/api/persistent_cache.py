"""Partitioned programs in jax's persistent compilation cache, shared between processes.

    jax.config.update("jax_compilation_cache_dir", "/somewhere")

jax stores XLA's compiled programs there. Beside each, this module stores the partitioned program and the shardings of
its results. The key hashes the lowered program without locations, its devices and meshes, the source of this package,
and the versions of its dependencies. Programs that took less than `jax_persistent_cache_min_compile_time_secs` are not
stored, and only process 0 writes, as in jax.

Not stored are programs that depend on Python functions (policies, custom partitionings, sharding callbacks), that call
a target which may have been annotated, or that caused a diagnostic, which a cached program would not repeat.
"""

import hashlib
import json
import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib.mlir import ir

from sdy import extras
from sdy.diagnostics import Diagnostic, capture, report
from sdy.passes.jax.compiler_context import Compiler, compares_layouts, hardware_of_compilers, memory_of
from sdy.passes.jax.device_mesh import AnyMesh, Device
from sdy.passes.jax.jax_internals import ForXla, PersistentCache, ToCompile, persistent_cache
from sdy.rules.call_targets import has_own_rule

_LOGGER = logging.getLogger(__name__)
_BUILT_ON = ("jax", "jaxlib", "xdsl")
_TARGET = re.compile(r'stablehlo\.custom_call @"?([^"(\s]+)')


def remembered(lowered: ToCompile, compilers: Sequence[Compiler], make: Callable[[], ForXla | None]) -> ForXla | None:
    """Return the cached program for `lowered`, or call `make` and cache its result.

    `make` returns None for a program that is not sharded, which is not cached.
    """
    kept = persistent_cache(lowered.devices)
    if kept is None or not _is_determined_by_text(lowered, compilers):
        return make()
    name = _name(lowered, compilers)
    if (found := _found(kept, name, lowered)) is not None:
        return found
    start = time.perf_counter()
    told: list[Diagnostic] = []
    try:
        with capture() as told:
            made = make()
    finally:
        for diagnostic in told:
            report(diagnostic)
    took = time.perf_counter() - start
    if made is not None and not told and took >= kept.least_seconds and jax.process_index() == 0:
        try:
            kept.put(name, _written(made, lowered.devices))
        except OSError as problem:
            _LOGGER.warning("%s cannot be written to jax's persistent cache: %s", name, problem)
    return made


def _found(kept: PersistentCache, name: str, lowered: ToCompile) -> ForXla | None:
    """Return the entry of this name, or None if it is missing or unreadable."""
    try:
        entry = kept.get(name)
        return None if entry is None else _read(entry, lowered)
    except (OSError, zlib.error, ir.MLIRError, LookupError, TypeError, ValueError) as problem:
        _LOGGER.warning("%s cannot be read from jax's persistent cache: %s", name, problem)
        return None


def _is_determined_by_text(lowered: ToCompile, compilers: Iterable[Compiler]) -> bool:
    """Return whether the partitioned program depends on the text alone, not on Python functions or registered rules."""
    of_functions = any(not isinstance(each, Compiler) for each in lowered.kept_alive)
    if of_functions or any(compiler.policy is not None for compiler in compilers):
        return False
    return all(map(has_own_rule, _TARGET.findall(lowered.text_without_places)))


def _name(lowered: ToCompile, compilers: Sequence[Compiler]) -> str:
    """Return the cache key of `lowered`."""
    devices = lowered.devices
    meshes = [*(compiler.mesh for compiler in compilers), jax.sharding.get_abstract_mesh(), *lowered.meshes]
    said = [
        _source(),
        *map(version, _BUILT_ON),
        [(device.platform, device.device_kind, device.id) for device in devices],
        [*dict.fromkeys(_mesh_text(mesh) for mesh in meshes if mesh is not None)],
        compares_layouts(compilers),
        memory_of(compilers),
        hardware_of_compilers(compilers),
        lowered.text_without_places,
    ]
    digest = hashlib.sha256(repr(said).encode()).hexdigest()
    return f"sdy_{re.sub(r'[^A-Za-z0-9_]', '_', lowered.function)}-{digest}"


@cache
def _source() -> str:
    """A digest of the source of this package: what it makes of a program, another version makes otherwise."""
    digest = hashlib.sha256()
    root = Path(extras.__file__).parent
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(name for name in files if name.endswith(".py")):
            digest.update(name.encode() + b"\0" + Path(folder, name).read_bytes())
    return digest.hexdigest()


def _mesh_text(mesh: AnyMesh) -> str:
    return repr((mesh.axis_names, mesh.axis_sizes, mesh.axis_types, [device.id for device in _devices(mesh)]))


def _devices(mesh: AnyMesh) -> Sequence[Device]:
    return () if isinstance(mesh, AbstractMesh) else tuple(mesh.devices.flat)


def _written(made: ForXla, devices: Sequence[Device]) -> bytes:
    places = {device: place for place, device in enumerate(devices)}
    said = [
        {
            "axes": [*zip(sharding.mesh.axis_names, sharding.mesh.axis_sizes, strict=True)],
            "types": [type_.name for type_ in sharding.mesh.axis_types],
            "devices": [places[device] for device in _devices(sharding.mesh)],
            "dims": [(axes,) if isinstance(axes, str) else axes for axes in sharding.spec.partitions],
            "unreduced": sorted(sharding.spec.unreduced),
        }
        for sharding in made.shardings
    ]
    text = str(made.module.operation.get_asm(enable_debug_info=True))
    return zlib.compress(json.dumps({"shardings": said, "text": text, "memory": made.memory}).encode(), level=1)


def _read(entry: bytes, lowered: ToCompile) -> ForXla:
    """Deserialize an entry of `_written` into the context of `lowered`.

    Raises zlib.error, ir.MLIRError, LookupError, TypeError or ValueError if the entry is damaged.
    """
    found = json.loads(zlib.decompress(entry))
    shardings = [_sharding(said, lowered.devices) for said in found["shardings"]]
    module = ir.Module.parse(found["text"], lowered.module.context)
    return ForXla(module, shardings, lowered.callbacks, int(found["memory"]))


def _sharding(said: Mapping[str, Any], devices: Sequence[Device]) -> NamedSharding:
    names, sizes = zip(*said["axes"], strict=True)
    grid = np.array([devices[place] for place in said["devices"]], dtype=object).reshape(sizes)
    mesh = Mesh(grid, names, axis_types=tuple(AxisType[name] for name in said["types"]))
    dims = [None if axes is None else tuple(axes) for axes in said["dims"]]
    return NamedSharding(mesh, PartitionSpec(*dims, unreduced=frozenset(said["unreduced"])))
