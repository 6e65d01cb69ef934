"""The programs of fragments, compiled for their meshes."""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.jax.api.compile import CompiledProgram, compile
from sdy.passes.jax.device_mesh import Device
from sdy.passes.mpmd.fragment_modules import fragment_module
from sdy.text import format

Fragment: TypeAlias = tuple[str, str]
"""The names of a function and of the mesh on which it runs."""


def compile_fragments(
    module: ModuleOp, fragments: Iterable[Fragment], devices: Mapping[str, Sequence[Device]]
) -> dict[Fragment, CompiledProgram]:
    """Compile fragments of `module`, each for the devices of its mesh, in threads; equal ones of a mesh once.

    Raises:
        DiagnosticError: A fragment cannot be partitioned or run.
    """
    modules: dict[tuple[str, str], ModuleOp] = {}
    keys: dict[Fragment, tuple[str, str]] = {}
    for name, mesh in dict.fromkeys(fragments):
        fragment = fragment_module(module, name)
        keys[name, mesh] = format(fragment), mesh
        modules.setdefault(keys[name, mesh], fragment)

    def compiled(key: tuple[str, str]) -> CompiledProgram:
        return compile(modules[key], devices[key[1]], compare_layouts=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = dict(zip(modules, pool.map(compiled, modules), strict=True))
    return {fragment: programs[key] for fragment, key in keys.items()}
