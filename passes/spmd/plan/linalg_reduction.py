"""Kind of reduction (sum, max or min) of operations of the `linalg` dialect, derived from their bodies.

The body has an element of each operand as argument, and yields the new elements of `outs`:

    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from sdy.dialect.constants import constant_value
from sdy.sharding import Reduction

_KINDS: dict[str, Reduction] = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.maximumf": "max",
    "arith.maxnumf": "max",
    "arith.maxsi": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "min",
    "arith.minsi": "min",
}


def linalg_reduction(op: Operation) -> Reduction | None:
    """Return the reduction that combines partial results of `op`, or None if there is no such collective.

    A sum must have `outs` that are known to be zero, because each device adds its partial sum to them.
    """
    blocks = op.regions[0].blocks if op.regions else ()
    if len(blocks) != 1 or not op.results:
        return None
    kinds = _kinds(blocks[0], len(op.results))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    outs = op.operands[len(op.operands) - len(op.results) :]
    return None if kind == "sum" and not all(map(_is_zero, outs)) else kind


def _kinds(body: Block, num_results: int) -> set[Reduction | None]:
    """Return the reductions by which `body` combines its last `num_results` arguments with the others."""
    yielded: Sequence[SSAValue] = body.last_op.operands if body.last_op is not None else ()
    starts = body.args[len(body.args) - num_results :]
    return {_kind(value.owner, start) for value, start in zip(yielded, starts, strict=True)}


def _kind(combination: Operation | Block, start: SSAValue) -> Reduction | None:
    if not isinstance(combination, Operation) or start not in combination.operands or not start.has_one_use():
        return None
    if start.type == i1:
        return None  # a sum of i1 is the parity, which no collective computes
    return _KINDS.get(combination.name)


def _is_zero(value: SSAValue) -> bool:
    """Return whether `value`, a scalar or a tensor, is a constant or fill of zeros."""
    if isinstance(value.owner, Operation) and value.owner.name == "linalg.fill":
        return _is_zero(value.owner.operands[0])
    match constant_value(value):
        case DenseIntOrFPElementsAttr() as constant:
            return all(element == 0 for element in constant.iter_values())
        case FloatAttr() | IntegerAttr() as constant:
            return constant.value.data == 0
        case _:
            return False
