"""The bytes that a device receives under `jax.jit` with the shardings of a layout, and under sdy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import device_count
from sdy.dialect.shardings import (
    func_arg_shardings,
    func_result_shardings,
    get_sharding,
    set_func_arg_shardings,
    set_func_result_shardings,
    set_result_shardings,
)
from sdy.ir.companions import clone_alone
from sdy.passes.account.account import compiled_costs, costs_under
from sdy.passes.account.cost_tables import UNDER
from sdy.passes.auto.origins import choosable_results
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.jax.jax_internals import function_of
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.python.device_axes import DeviceAxes
from sdy.passes.python_layouts.constrained import Rule, constrain
from sdy.sharding import TensorSharding

_NEGLIGIBLE = 64
"""Bytes below which programs count as equal."""

_TOLERANCE = 1.05
"""Ratio of bytes up to which programs count as equal."""


@dataclass(frozen=True)
class ReceivedBytes:
    """The bytes that a device receives in a run, averaged over devices."""

    under_jax: float
    """With shardings of arguments, results and equations, under `jax.jit`."""
    under_sdy: float

    @property
    def is_more(self) -> bool:
        """True if a device receives more under `jax.jit` than under sdy, by more than a negligible part."""
        return self.under_jax > max(_NEGLIGIBLE, _TOLERANCE * self.under_sdy)

    def __str__(self) -> str:
        if max(self.under_jax, self.under_sdy) <= _NEGLIGIBLE or self.under_jax == self.under_sdy:
            return f"Under jax.jit, a device receives as many bytes as under sdy: {round(self.under_jax):,}."
        if not self.under_sdy:
            how = "bytes that it does not receive"
        else:
            ratio = self.under_jax / self.under_sdy
            how = f"{ratio:.2f} times the bytes that it receives"
        numbers = f"{round(self.under_jax):,}, not {round(self.under_sdy):,}"
        return f"Under jax.jit, a device receives {how} under sdy: {numbers}."


def received_bytes(module: ModuleOp, layout: PartitionedLayout) -> ReceivedBytes | None:
    """Compile a program with the shardings of a layout's arguments and results alone, and as sdy partitions it.

    Args:
        module: The program before propagation.
        layout: Its layout.

    Returns:
        The bytes of both, or None if there are fewer devices than the mesh has.
    """
    if device_count(module) > len(jax.devices()):
        return None
    alone = clone_alone(module)
    main, propagated = main_function(alone), main_function(layout.module)
    set_func_arg_shardings(main, map(_without_priority, func_arg_shardings(propagated)))
    set_func_result_shardings(main, map(_without_priority, func_result_shardings(propagated)))
    for result in choosable_results(alone):
        if get_sharding(result):
            set_result_shardings(result.op, ())
    ours = compiled_costs(layout.local)
    assert ours is not None
    return ReceivedBytes(costs_under(UNDER, alone).bytes_received, ours.bytes_received)


def bytes_with_rules(
    jaxpr: Any,
    axes: DeviceAxes,
    arguments: Sequence[PartitionSpec],
    results: Sequence[PartitionSpec],
    rules: Mapping[str, Rule],
) -> float:
    """Return the bytes that a device receives with shardings of the results of equations, under `jax.jit`."""
    devices = [jax.devices()[index] for index in axes.mesh.device_ids or range(axes.mesh.size)]
    mesh = Mesh(np.array(devices).reshape(axes.sizes), axes.names, axis_types=(AxisType.Auto,) * len(axes.names))
    placed_arguments, placed_results = ([NamedSharding(mesh, spec) for spec in each] for each in (arguments, results))
    function = constrain(function_of(jaxpr), mesh, rules)
    jitted = jax.jit(function, in_shardings=tuple(placed_arguments), out_shardings=placed_results)
    arrays = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in jaxpr.in_avals]
    return bytes_received(jitted.lower(*arrays).compile().as_text() or "", axes.mesh.size)


def _without_priority(sharding: TensorSharding | None) -> TensorSharding | None:
    return sharding and sharding.map_dims(lambda dim: replace(dim, is_closed=True, priority=None))
