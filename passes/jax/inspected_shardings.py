"""`jax.debug.inspect_array_sharding`: who asks for the sharding of a value is told what was found."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BytesAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from sdy.ir.editing import erase
from sdy.ir.walking import operations_of
from sdy.passes.jax.device_mesh import Device
from sdy.passes.jax.jax_internals import sharding_questions
from sdy.passes.jax.placed_values import placed_values
from sdy.stablehlo.custom_call import CustomCallOp

INSPECTION = "InspectSharding"


def answer_inspections(module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any]) -> None:
    """Tell whoever asks for the sharding of a value of `module` what it is, and take the question out, in place.

    A question is a custom call of jax, whose `backend_config` names one of the objects that the lowering keeps alive.
    """
    questions = [op for op in operations_of(module, CustomCallOp) if op.call_target_name.data == INSPECTION]
    if not questions:
        return
    asking = sharding_questions(kept_alive)
    shardings = placed_values(module, [op.operands[0] for op in questions], devices)
    for op, sharding in zip(questions, shardings, strict=True):
        asking[_bytes(op.backend_config)](sharding)
        erase(op)


def _bytes(config: Attribute | None) -> bytes:
    if isinstance(config, BytesAttr):
        return config.data
    return config.data.encode() if isinstance(config, StringAttr) else b""
