"""Propagation of a module lowered by jax, with the Python callbacks that take part in it."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations_of
from sdy.passes.common.inline import inline_calls
from sdy.passes.jax.callbacks.custom_partitioning import CUSTOM_PARTITIONING, partition_customly
from sdy.passes.jax.callbacks.inferred_rules import infer_rules
from sdy.passes.jax.callbacks.inspected_shardings import INSPECTION, answer_inspections
from sdy.passes.jax.device_mesh import Device
from sdy.passes.layouts import PropagatedLayout, propagated_layouts
from sdy.passes.policy.policy import Policy
from sdy.stablehlo.custom_call import CustomCallOp

_WITH_CALLBACKS = {CUSTOM_PARTITIONING, INSPECTION}


def lowered_layouts(
    module: ModuleOp,
    policy: Policy | None,
    compare: bool,
    devices: Sequence[Device],
    kept_alive: Sequence[Any],
    callbacks: list[Any],
) -> list[PropagatedLayout]:
    """Return the propagated layouts of `module`, and run its sharding inspections and custom partitionings.

    A module with inspections or custom partitionings has one layout only, since their callbacks run once.

    Args:
        module: The module to propagate.
        policy: The policy to apply, if any.
        compare: True to also propagate the HLO form of the program.
        devices: The devices of the program.
        kept_alive: The objects that the lowering of `module` keeps alive, including these callbacks.
        callbacks: The Python callbacks of `module`; those of custom partitionings are appended.

    Raises the errors of `sdy.propagate`.
    """
    inline_calls(module)  # arguments and results of functions can only be sharded evenly
    has_callbacks = any(op.call_target_name.data in _WITH_CALLBACKS for op in operations_of(module, CustomCallOp))
    has_mesh = any(mesh.axes for mesh in named_meshes(module).values())
    if has_callbacks and has_mesh:
        infer_rules(module, devices, kept_alive)
    layouts = propagated_layouts(module, policy, compare and not has_callbacks)
    if has_callbacks and has_mesh:
        answer_inspections(module, devices, kept_alive)
        partition_customly(module, devices, kept_alive, callbacks)
    return layouts
