"""`sdy.compiler`: whatever jax compiles within it is compiled through this compiler.

    with sdy.compiler(mesh=mesh, policy=policy):
        trainer.fit()  # jax.jit, nnx.jit, eqx.filter_jit, ... somewhere inside

jax traces a program and lowers it; before it hands the module to XLA, the module becomes the program that propagation
and partitioning make of it, whose arguments and results lie where jax was told that they lie.
"""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any
from warnings import warn

import jax
from jaxlib.mlir import ir

from sdy.dialect.meshes import named_meshes
from sdy.mesh import Mesh
from sdy.passes.jax.default_mesh import name_mesh
from sdy.passes.jax.device_mesh import AnyMesh, Device
from sdy.passes.jax.elapsed_time import elapsed_time_logged
from sdy.passes.jax.from_jax import module_of
from sdy.passes.jax.given_shardings import GivenShardings
from sdy.passes.jax.jax_internals import before_xla_compiles, kept_alive
from sdy.passes.jax.local_program import LocalProgram, parsed
from sdy.passes.jax.lowered_layouts import lowered_layouts
from sdy.passes.jax.manual_program import make_manual
from sdy.passes.layouts import cheapest
from sdy.passes.policy.policy import Policy, policies_in_turn
from sdy.text import format


@dataclass(frozen=True)
class Compiler:
    """That a program is compiled by this compiler: for which mesh, if that is said, with which policy, and whether
    layouts are compared."""

    mesh: AnyMesh | None = None
    policy: Policy | None = None
    compare_layouts: bool = True


_chosen = jax.make_user_context()


@contextmanager
def compiler(
    *, mesh: jax.sharding.Mesh | Mesh | None = None, policy: Policy | None = None, compare_layouts: bool = True
) -> Generator[None]:
    """Within the `with` block, or the function so decorated, all that jax compiles for several devices is ours.

    That includes what other libraries make of `jax.jit`, and what was compiled before, which is traced and compiled
    again. `mesh` is that of `jax.set_mesh`: what has no shardings runs on its devices; by default programs are for the
    devices of their arguments. `policy`, called for each program, and `compare_layouts` are those of `sdy.jit`.

    What is compiled raises DiagnosticError where it cannot be partitioned.
    """
    of_jax = GivenShardings.of(mesh, None, None).mesh
    let_jax_ask()
    with choosing(Compiler(of_jax, policy, compare_layouts)), _mesh_of_context(of_jax):
        yield


def _mesh_of_context(mesh: AnyMesh | None) -> AbstractContextManager[Any]:
    match mesh:
        case None:
            return nullcontext()
        case jax.sharding.AbstractMesh():
            return jax.sharding.use_abstract_mesh(mesh)
        case _:
            return jax.set_mesh(mesh)


def chosen() -> list[Compiler]:
    """That of the `with` block around what is running."""
    return [] if _chosen.value is None else [_chosen.value]


def choosing(compiler: Compiler) -> AbstractContextManager[None]:
    """Let `compiler` be what is chosen, within a `with` block."""
    return _chosen(compiler)


def compilers_in(lowered: jax.stages.Lowered) -> list[Compiler]:
    """Those that functions within a lowered one were given."""
    return [each for each in kept_alive(lowered) if isinstance(each, Compiler)]


def policy_of(compilers: Iterable[Compiler]) -> Policy | None:
    """The policies of `compilers`, one after the other."""
    policies = [compiler.policy for compiler in dict.fromkeys(compilers) if compiler.policy is not None]
    return policies_in_turn(policies) if policies else None


def compares_layouts(compilers: Iterable[Compiler]) -> bool:
    """Whether none of `compilers` is to take the layout of the program as it is written."""
    return all(compiler.compare_layouts for compiler in compilers)


@cache
def let_jax_ask() -> None:
    """From now on, let jax ask for what is to be compiled in place of a module."""
    before_xla_compiles(_partitioned)


def _partitioned(name: str, module: ir.Module, devices: Sequence[Device], keepalives: Sequence[Any]) -> ir.Module:
    """What XLA is given in place of `module`, a program for `devices` whose lowering keeps these objects alive."""
    asked = [each for each in keepalives if isinstance(each, Compiler)]
    compilers = [*chosen(), *asked]
    if not compilers or any(isinstance(each, LocalProgram) for each in keepalives):
        return module
    _warn_of_other_devices(name, devices, asked)
    if len(devices) == 1:
        return module
    function = name.removeprefix("jit(").removesuffix(")")
    with elapsed_time_logged("parsing", function):
        declared = module_of(str(module.operation.get_asm(enable_debug_info=True)))
    meshes = [mesh for mesh in _meshes(compilers) if mesh.size == len(devices)]
    if meshes:
        name_mesh(declared, meshes[0])
    elif not named_meshes(declared):
        return module
    program = declared.clone()
    with elapsed_time_logged("propagation", function):
        layouts = lowered_layouts(program, policy_of(compilers), compares_layouts(compilers), devices, keepalives)
    with elapsed_time_logged("partitioning", function):
        program = cheapest(layouts).local
        make_manual(program, declared, devices)
    return parsed(format(program, generic=True, debuginfo=True))


def _meshes(compilers: Iterable[Compiler]) -> Iterator[jax.sharding.AbstractMesh]:
    """The meshes that a program may be for that names none."""
    yield from (compiler.mesh.abstract_mesh for compiler in compilers if compiler.mesh is not None)
    yield jax.sharding.get_abstract_mesh()


def _warn_of_other_devices(name: str, devices: Sequence[Device], asked: Iterable[Compiler]) -> None:
    for compiler in asked:
        if isinstance(compiler.mesh, jax.sharding.Mesh) and {*compiler.mesh.devices.flat} != {*devices}:
            lost = f"a function of sdy.jit is part of {name}, which jax compiles for {len(devices)} of the devices"
            help_ = f"its mesh, {dict(compiler.mesh.shape)}, is not used: call {name} within sdy.compiler(mesh=...)"
            warn(f"{lost}: {help_}", stacklevel=2)
