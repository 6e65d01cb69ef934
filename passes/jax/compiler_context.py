"""The active compilers, as a part of the context by which jax caches traces and programs."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import jax

from sdy.formatting import parse_bytes
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.policy import Policy, chain_policies
from sdy.passes.spmd.costs.hardware import hardware_of


@dataclass(frozen=True)
class Compiler:
    """Options of compiling a program.

    Attributes:
        mesh: The mesh, if known.
        policy: The policy.
        compare_layouts: Whether layouts are compared.
        memory: The most memory of a device, a size such as "2G"; empty for no limit.
        hardware: The preset or file of the hardware that products are windowed for; empty to window none.
    """

    mesh: AnyMesh | None = None
    policy: Policy | None = None
    compare_layouts: bool = True
    memory: str = ""
    hardware: str = ""


CPU_OPTIONS = {
    "xla_disable_hlo_passes": "cse_barrier_expander",
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}
"""Options of XLA that keep optimization barriers on CPUs, where it removes them before it merges equal operations."""


def memory_limit(memory: str | float | None) -> str:
    """Return a memory limit, a number of bytes or a size such as "2G", as a text; an empty text for no limit.

    Raises:
        ValueError: `memory` is not a size.
    """
    return "" if memory is None else str(parse_bytes(memory))


def known_hardware(hardware: str | None) -> str:
    """Return the name of a preset or a file, or an empty text for None. Raises DiagnosticError if it is unknown."""
    if hardware:
        hardware_of(hardware)
    return hardware or ""


_compilers = jax.make_user_context(())


def active_compilers() -> tuple[Compiler, ...]:
    """Return the compilers of the enclosing functions of `sdy.jit` and `with sdy.compiler` blocks, outermost first."""
    return _compilers.value


def use_compilers(compilers: tuple[Compiler, ...]) -> AbstractContextManager[None]:
    """Make `compilers` the active ones in a `with` block."""
    return _compilers(compilers)


def policy_of(compilers: Iterable[Compiler]) -> Policy | None:
    """Return a policy that calls the policies of `compilers` in order, or None if they have none."""
    policies = [compiler.policy for compiler in dict.fromkeys(compilers) if compiler.policy is not None]
    return chain_policies(policies) if policies else None


def memory_of(compilers: Iterable[Compiler]) -> str:
    """Return the least memory that one of `compilers` allows, or an empty text if none has a limit."""
    return min((compiler.memory for compiler in compilers if compiler.memory), key=parse_bytes, default="")


def hardware_of_compilers(compilers: Iterable[Compiler]) -> str:
    """Return the hardware of the innermost of `compilers` that names some, or an empty text."""
    return next((compiler.hardware for compiler in reversed([*compilers]) if compiler.hardware), "")


def compares_layouts(compilers: Iterable[Compiler]) -> bool:
    """Return whether all of `compilers` compare the layouts of both forms of a program."""
    return all(compiler.compare_layouts for compiler in compilers)
