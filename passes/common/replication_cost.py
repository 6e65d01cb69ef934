"""Warnings about operations that are replicated, with their cost and the names of kernels.

Pallas and Triton kernels all lower to custom calls of the same targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import DictionaryAttr, NameLoc, StringAttr
from xdsl.ir import Attribute, Operation

from sdy.diagnostics import ComputedWholeWarning, warn
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import num_elements_of, shape
from sdy.mesh import Mesh
from sdy.passes.common.properties import num_bytes
from sdy.rules.call_targets import KERNELS
from sdy.rules.registry import name_of
from sdy.sharding import TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp


def describe_op(op: Operation) -> str:
    """Return an operation's name in messages: `'stablehlo.custom_call' op @target (kernel 'name')`."""
    if not isinstance(op, CustomCallOp):
        return f"'{name_of(op)}' op"
    kernel = f" (kernel '{name}')" if (name := kernel_name(op)) else ""
    return f"'{name_of(op)}' op @{op.call_target_name.data}{kernel}"


def current_shardings(op: Operation) -> list[TensorSharding | None]:
    """Return the current shardings of the operands and the results of `op`."""
    return [get_sharding(value) for value in (*op.operands, *op.results)]


@lru_cache(maxsize=2**12)
def local_bytes(type_: Attribute, sharding: TensorSharding | None, mesh: Mesh | None) -> int:
    """Return the bytes of a tensor's local shard; of the full tensor without a sharding.

    Memoized, as the tensors of a program have few types and shardings.
    """
    elements = num_elements_of(type_)
    if not elements or sharding is None or mesh is None or not sharding.dims:
        return num_bytes(type_)
    return num_bytes(type_) // elements * prod(sharding.local_shape(shape(type_), mesh))


@dataclass(frozen=True)
class LocalBytes:
    """The local bytes of an operation's operands and results on each device."""

    operands: int
    results: int

    @classmethod
    def by(cls, op: Operation, shardings: Sequence[TensorSharding | None]) -> "LocalBytes":
        """Compute the local bytes for shardings of the operands and then the results."""
        each = [
            local_bytes(value.type, sharding, sharding and mesh_of(sharding, op))
            for value, sharding in zip((*op.operands, *op.results), shardings, strict=True)
        ]
        return cls(sum(each[: len(op.operands)]), sum(each[len(op.operands) :]))

    def describe_increase(self, after: "LocalBytes") -> str:
        """Describe the cost per device of holding `after` instead; an empty string if there is no cost."""
        costs = {"receives": after.operands - self.operands, "makes": after.results - self.results}
        increases = [f"{verb} {count:,} bytes more" for verb, count in costs.items() if count > 0]
        return f"each device {' and '.join(increases)}" if increases else ""


def warn_of_cost(op: Operation, what: str, before: LocalBytes, after: LocalBytes, *notes: str) -> None:
    """Warn about `op`, with `what` such as "is replicated", if the change costs bytes."""
    if cost := before.describe_increase(after):
        warn(op, f"{describe_op(op)} {what} ({cost})", *notes, category=ComputedWholeWarning)


_PALLAS_CALL = "/pallas_call"


def kernel_name(op: CustomCallOp) -> str | None:
    """Return the name of the kernel that `op` calls; None for other calls and unnamed kernels.

    On TPU it is the attribute `kernel_name`, for Triton an entry of the backend_config; for Mosaic on GPU it is only in
    the location's name, as in `jit(step)/flash_attention/pallas_call`.
    """
    if op.call_target_name.data not in KERNELS:
        return None
    config = op.attributes.get("mhlo.backend_config")
    named = config.data.get("name") if isinstance(config, DictionaryAttr) else op.attributes.get("kernel_name")
    if isinstance(named, StringAttr):
        return named.data
    path = op.location.desc.data if isinstance(op.location, NameLoc) else ""
    scope = path.removesuffix(_PALLAS_CALL).rpartition("/")[2] if path.endswith(_PALLAS_CALL) else ""
    return scope if scope.isidentifier() else None
