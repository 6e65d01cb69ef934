"""The shardings of a program as trees of `PartitionSpec`s."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jax.sharding import PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.common.immutable import Immutable
from sdy.passes.jax.bindings.call_trees import trace_of
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.python.device_axes import DeviceAxes
from sdy.passes.python_layouts.constrained import Rule
from sdy.passes.python_layouts.equations import Equation
from sdy.passes.python_layouts.paths import Keys
from sdy.passes.python_layouts.received import ReceivedBytes, bytes_with_rules, received_bytes
from sdy.passes.python_layouts.rules import Item, find_rules

_PRODUCTS = frozenset({"conv_general_dilated", "dot_general"})

EquationRules = Mapping[str, Rule]


@dataclass(frozen=True)
class ConstrainedResult:
    """The result of an operation with a sharding of its own."""

    name: str
    """The operation and its source line, as `stablehlo.add at model.py:3:5`."""
    spec: PartitionSpec


@dataclass(frozen=True, repr=False)
class LayoutSpecs(Immutable):
    """The shardings of a program.

    Attributes:
        axes: The axes of the mesh. If a sharding uses a part of an axis, the axis is cut: `x` into `x_0` and
            `x_1`.
        arguments: The tuple of the arguments' trees, with a `PartitionSpec` for each array; keyword arguments are in a
            dictionary after them. The program of a parsed module has a dictionary of paths instead.
        results: The tree of the results, or a dictionary of paths.
        constraints: The shardings of results of operations that `sdy.auto` chose.
    """

    name: str
    axes: DeviceAxes
    arguments: Any
    results: Any
    constraints: tuple[ConstrainedResult, ...]
    argument_names: tuple[str, ...]
    argument_specs: tuple[tuple[Keys, PartitionSpec], ...]
    result_specs: tuple[tuple[Keys, PartitionSpec], ...]
    _equations: Sequence[tuple[Equation, Rule]]
    _module: ModuleOp | None
    """The program; None in other processes than the one that propagated it."""
    _layout: PartitionedLayout | None

    def __getstate__(self) -> dict[str, Any]:
        measured = {"received_alone": self.received_alone, "_constrained": self._constrained}
        return {**vars(self), **measured, "_equations": (), "_module": None, "_layout": None}

    @cached_property
    def received_alone(self) -> ReceivedBytes | None:
        """The bytes that a device receives with the shardings of arguments and results under `jax.jit`, and under sdy.

        The first access, or pickling, compiles the program twice. None if there are fewer devices than the mesh has.
        """
        assert self._module is not None
        assert self._layout is not None
        return received_bytes(self._module, self._layout)

    @property
    def received(self) -> ReceivedBytes | None:
        """The bytes that a device receives with these shardings and `equation_rules` under `jax.jit`, and under sdy.

        None if there are fewer devices than the mesh has.
        """
        return self._constrained[0]

    @property
    def equation_rules(self) -> EquationRules:
        """Shardings of the results of equations by their paths; empty where a device receives as little without them.

        They are for products of matrices, or, where that does not suffice, for all equations.
        """
        return self._constrained[1]

    @cached_property
    def _constrained(self) -> tuple[ReceivedBytes | None, EquationRules]:
        received: ReceivedBytes | None = self.received_alone
        rules: EquationRules = {}
        for primitives in (_PRODUCTS, None) if self._equations else ():
            if received is None or not received.is_more:
                break
            tried = self._rules_of(primitives)
            if all(rule is None for rule in tried.values()):
                continue
            bytes_ = self._received_with(tried)
            if bytes_ < received.under_jax:
                received, rules = replace(received, under_jax=bytes_), tried
        return received, rules

    def _rules_of(self, primitives: Set[str] | None) -> EquationRules:
        """Return rules for the equations of these primitives, by default all, which leave the others alone."""
        items = [
            Item((*equation.path.split("/"),), None if primitives and equation.primitive not in primitives else rule)
            for equation, rule in self._equations
        ]
        rules = find_rules(items)
        assert rules is not None
        return rules

    def _received_with(self, rules: EquationRules) -> float:
        assert self._module is not None
        arguments, results = ([spec for _, spec in each] for each in (self.argument_specs, self.result_specs))
        return bytes_with_rules(trace_of(self._module).jaxpr, self.axes, arguments, results, rules)
