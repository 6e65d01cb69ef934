"""Propagation of a module lowered by jax, with the Python callbacks that take part in it.

`jax.debug.inspect_array_sharding` has a callback that receives the propagated sharding of a value. Callbacks of custom
partitionings are in `custom_partitioning.py`.
"""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from sdy.dialect.meshes import named_meshes
from sdy.ir.editing import erase
from sdy.ir.walking import operations_of
from sdy.passes.common.inline import inline_calls
from sdy.passes.importing.expand_operations import expand_operations
from sdy.passes.jax.callbacks.custom_partitioning import CUSTOM_PARTITIONING, partition_customly
from sdy.passes.jax.callbacks.inferred_rules import infer_rules
from sdy.passes.jax.device_mesh import Device, placed_values
from sdy.passes.jax.jax_internals import sharding_questions
from sdy.passes.layouts import PropagatedLayout, propagated_layouts
from sdy.passes.policy import Policy
from sdy.stablehlo.custom_call import CustomCallOp

_INSPECTION = "InspectSharding"
_WITH_CALLBACKS = {CUSTOM_PARTITIONING, _INSPECTION}


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
    expand_operations(module)  # composites become calls
    inline_calls(module)  # arguments and results of functions can only be sharded evenly
    has_callbacks = any(op.call_target_name.data in _WITH_CALLBACKS for op in operations_of(module, CustomCallOp))
    has_mesh = any(mesh.axes for mesh in named_meshes(module).values())
    if has_callbacks and has_mesh:
        infer_rules(module, devices, kept_alive)
    layouts = propagated_layouts(module, policy, compare and not has_callbacks)
    if has_callbacks and has_mesh:
        _answer_inspections(module, devices, kept_alive)
        partition_customly(module, devices, kept_alive, callbacks)
    return layouts


def _answer_inspections(module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any]) -> None:
    """Call the callback of each inspected value with its sharding, and erase the inspections, in place.

    An inspection is a custom call whose `backend_config` identifies one of the objects `kept_alive` by the lowering of
    `module`, a program for `devices`.
    """
    inspections = [op for op in operations_of(module, CustomCallOp) if op.call_target_name.data == _INSPECTION]
    if not inspections:
        return
    callbacks = sharding_questions(kept_alive)
    shardings = placed_values(module, [op.operands[0] for op in inspections], devices)
    for op, sharding in zip(inspections, shardings, strict=True):
        callbacks[_bytes(op.backend_config)](sharding)
        erase(op)


def _bytes(config: Attribute | None) -> bytes:
    if isinstance(config, BytesAttr):
        return config.data
    return config.data.encode() if isinstance(config, StringAttr) else b""
