"""`jax.debug.inspect_array_sharding`: callbacks that receive the propagated sharding of a value."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from sdy.ir.editing import erase
from sdy.ir.walking import operations_of
from sdy.passes.jax.callbacks.placed_values import placed_values
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.jax_internals import sharding_questions
from sdy.stablehlo.custom_call import CustomCallOp

INSPECTION = "InspectSharding"


def answer_inspections(module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any]) -> None:
    """Call the callback of each inspected value with its sharding, and erase the inspections, in place.

    An inspection is a custom call whose `backend_config` identifies one of the objects `kept_alive` by the lowering of
    `module`, a program for `devices`.
    """
    inspections = [op for op in operations_of(module, CustomCallOp) if op.call_target_name.data == INSPECTION]
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
