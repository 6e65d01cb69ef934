"""Which compilers are chosen for what jax compiles: a part of what jax knows its traces and programs by."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import jax

from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.policy.policy import Policy, chain_policies


@dataclass(frozen=True)
class Compiler:
    """That a program is compiled by this compiler: for which mesh, if that is said, with which policy, and whether
    layouts are compared."""

    mesh: AnyMesh | None = None
    policy: Policy | None = None
    compare_layouts: bool = True


_compilers = jax.make_user_context(())


def active_compilers() -> tuple[Compiler, ...]:
    """Those of the functions and of the `with` block around what is running."""
    return _compilers.value


def use_compilers(compilers: tuple[Compiler, ...]) -> AbstractContextManager[None]:
    """Let `compilers` be what is chosen, within a `with` block."""
    return _compilers(compilers)


def policy_of(compilers: Iterable[Compiler]) -> Policy | None:
    """The policies of `compilers`, one after the other."""
    policies = [compiler.policy for compiler in dict.fromkeys(compilers) if compiler.policy is not None]
    return chain_policies(policies) if policies else None


def compares_layouts(compilers: Iterable[Compiler]) -> bool:
    """Whether none of `compilers` is to take the layout of the program as it is written."""
    return all(compiler.compare_layouts for compiler in compilers)
