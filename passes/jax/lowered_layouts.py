"""The layouts of a module that jax lowered, of which some operations speak of functions of Python."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations_of
from sdy.passes.common.inline import inline_calls
from sdy.passes.jax.custom_partitioning import CUSTOM_PARTITIONING, partition_customly
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.inferred_rules import infer_rules
from sdy.passes.jax.inspected_shardings import INSPECTION, answer_inspections
from sdy.passes.layouts import PropagatedLayout, propagated_layouts
from sdy.passes.policy.policy import Policy
from sdy.stablehlo.custom_call import CustomCallOp

_ASKING = {CUSTOM_PARTITIONING, INSPECTION}


def lowered_layouts(
    module: ModuleOp,
    policy: Policy | None,
    compare: bool,
    devices: Sequence[Device],
    kept_alive: Sequence[Any],
    callbacks: list[Any],
) -> list[PropagatedLayout]:
    """What `propagated_layouts` makes of `module`, a program for `devices`; the functions that ask are told.

    `kept_alive` are the objects that the lowering of `module` keeps alive, those functions among them. A module with
    such functions has one layout, as each is asked once. `callbacks` are the Python functions that `module` calls, to
    which those of custom partitionings are added. Raises what `sdy.propagate` raises.
    """
    inline_calls(module)  # arguments and results of functions would be split evenly only
    asks = any(op.call_target_name.data in _ASKING for op in operations_of(module, CustomCallOp))
    has_mesh = any(mesh.axes for mesh in named_meshes(module).values())
    if asks and has_mesh:
        infer_rules(module, devices, kept_alive)
    layouts = propagated_layouts(module, policy, compare and not asks)
    if asks and has_mesh:
        answer_inspections(module, devices, kept_alive)
        partition_customly(module, devices, kept_alive, callbacks)
    return layouts
