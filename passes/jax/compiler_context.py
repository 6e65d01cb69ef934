"""The active compilers, as a part of the context by which jax caches traces and programs."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import jax

from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.policy import Policy, chain_policies


@dataclass(frozen=True)
class Compiler:
    """Options of compiling a program: its mesh, if known, its policy, and whether layouts are compared."""

    mesh: AnyMesh | None = None
    policy: Policy | None = None
    compare_layouts: bool = True


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


def compares_layouts(compilers: Iterable[Compiler]) -> bool:
    """Return whether all of `compilers` compare the layouts of both forms of a program."""
    return all(compiler.compare_layouts for compiler in compilers)
