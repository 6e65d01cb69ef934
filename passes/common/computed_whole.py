"""Telling a person what is computed whole, and what that costs each device."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, Operation

from sdy.diagnostics import warn
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import num_elements_of, shape
from sdy.mesh import Mesh
from sdy.passes.common.kernel_name import kernel_name
from sdy.passes.common.num_bytes import num_bytes
from sdy.rules.registry import name_of
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.warning_categories import ComputedWholeWarning


def named(op: Operation) -> str:
    """An operation as messages call it: `'stablehlo.custom_call' op @target (kernel 'name')`."""
    if not isinstance(op, CustomCallOp):
        return f"'{name_of(op)}' op"
    kernel = f" (kernel '{name}')" if (name := kernel_name(op)) else ""
    return f"'{name_of(op)}' op @{op.call_target_name.data}{kernel}"


def shardings_around(op: Operation) -> list[TensorSharding | None]:
    """The shardings that the operands and the results of `op` have now."""
    return [get_sharding(value) for value in (*op.operands, *op.results)]


def local_bytes(type_: Attribute, sharding: TensorSharding | None, mesh: Mesh | None) -> int:
    """The bytes that a device has of a tensor; all of it without a sharding."""
    elements = num_elements_of(type_)
    if not elements or sharding is None or mesh is None or not sharding.dims:
        return num_bytes(type_)
    return num_bytes(type_) // elements * prod(sharding.local_shape(shape(type_), mesh))


@dataclass(frozen=True)
class HeldBytes:
    """The bytes that a device has of the operands and of the results of an operation."""

    operands: int
    results: int

    @classmethod
    def by(cls, op: Operation, shardings: Sequence[TensorSharding | None]) -> "HeldBytes":
        """What it has as these shardings of the operands and then of the results say."""
        each = [
            local_bytes(value.type, sharding, sharding and mesh_of(sharding, op))
            for value, sharding in zip((*op.operands, *op.results), shardings, strict=True)
        ]
        return cls(sum(each[: len(op.operands)]), sum(each[len(op.operands) :]))

    def cost_after(self, after: "HeldBytes") -> str:
        """What it costs that the operation needs what `after` says instead; "" for nothing."""
        costs = {"receives": after.operands - self.operands, "makes": after.results - self.results}
        told = [f"{verb} {count:,} bytes more" for verb, count in costs.items() if count > 0]
        return f"each device {' and '.join(told)}" if told else ""


def warn_of_whole(op: Operation, what: str, before: HeldBytes, after: HeldBytes, *notes: str) -> None:
    """Warn that `op` does `what`, such as to be computed whole, if that costs anything."""
    if cost := before.cost_after(after):
        warn(op, f"{named(op)} {what} ({cost})", *notes, category=ComputedWholeWarning)
