"""The jaxpr, and the trees of the arguments and results, of a program that JAX lowered, kept beside its module."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.tree_util import tree_leaves
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.companions import Copies, companion
from sdy.passes.jax.jax_internals import kept_arguments


@dataclass
class Trace:
    """The closed jaxpr of a module, or None if it is unknown, as for a parsed module."""

    jaxpr: Any = None

    def copied(self, copies: Copies) -> "Trace":
        """Return the same for a copy of the module."""
        return Trace(self.jaxpr)


def trace_of(module: ModuleOp) -> Trace:
    """Return the trace of a module."""
    return companion(module, Trace)


@dataclass
class CallTrees:
    """The trees of arguments and results, with a description of an array at each leaf.

    Attributes:
        arguments: The pair of positional and keyword arguments, or None if it is unknown, as for a parsed module.
        numbers: The argument of the main function for each leaf of `arguments`, or None if the program does not use it.
        results: The results, or None if they are unknown.
    """

    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    numbers: Sequence[int | None] = ()
    results: Any = None

    def copied(self, copies: Copies) -> "CallTrees":
        """Return the trees for a copy of the module."""
        return CallTrees(self.arguments, self.numbers, self.results)


def call_trees(module: ModuleOp) -> CallTrees:
    """Return the trees of the arguments and results of a module; they are unknown if it was parsed."""
    return companion(module, CallTrees)


def call_trees_of(lowered: jax.stages.Lowered) -> CallTrees:
    """Return the trees of the arguments and results of a lowered program."""
    number = {leaf: index for index, leaf in enumerate(kept_arguments(lowered))}
    numbers = [number.get(leaf) for leaf in range(len(tree_leaves(lowered.args_info)))]
    return CallTrees(lowered.args_info, numbers, lowered.out_info)


def keep_call_trees(module: ModuleOp, lowered: jax.stages.Lowered) -> None:
    """Keep the trees of a lowered program beside its module."""
    found, trees = call_trees_of(lowered), call_trees(module)
    trees.arguments, trees.numbers, trees.results = found.arguments, found.numbers, found.results
