"""A tensor is summed over devices, which then reduce it to a much smaller one.

The sum of a tensor that is masked to zeros on all devices but one is a broadcast. The outputs of a pipeline, which its
last stage has, are summed so that each device computes the loss, though the sum of the loss is one number. The sum of
any other tensor can follow a sum or a mean of its elements, and what else is linear.

Before::

    outputs = jax.lax.psum(jnp.where(is_last, outputs, 0), "stage")
    return jnp.mean((outputs - targets) ** 2)

After::

    loss = jnp.mean((outputs - targets) ** 2)
    return jax.lax.psum(jnp.where(is_last, loss, 0), "stage")
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from sdy.ir.shapes import rank
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.use_def import is_linear, users_through
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.properties import is_pure, uniform_number, value_bytes
from sdy.passes.spmd.plan.reduction_kinds import operation_reduction, region_reduction
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.agreement import element_type
from sdy.stablehlo.elementwise import ConvertOp, MulOp
from sdy.stablehlo.mixed_elementwise import SelectOp
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.stablehlo.reduction import ReduceOp

_MOST = 1 / 8
"""The part of the bytes of the sum that the smaller tensors have."""

_MASKED = ", which is zero on all devices but those that a condition selects"


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find all-reduces of masked tensors whose results are only used for much smaller tensors."""
    for collective in program.collectives:
        op = collective.op
        if collective.kind != "all-reduce" or len(op.results) != 1:
            continue
        is_masked = _is_masked(op.operands[0])
        if not is_masked and not _is_written_sum(collective.source):
            continue
        total = value_bytes(op.results[0])
        smaller = _reduced(op.results[0], _MOST * total, is_masked)
        bytes_ = sum(map(value_bytes, smaller))
        if smaller and total and bytes_ <= _MOST * total:
            axes, type_ = quoted_axes(collective.axes), max(smaller, key=value_bytes).type
            yield Suspicion(
                collective.source or op,
                f"an all-reduce over {axes} sums {op.results[0].type}{_MASKED if is_masked else ''}, and devices only "
                f"use it to compute {type_}",
                f"compute {type_} first, and {'mask and ' if is_masked else ''}sum that",
                received=(1 - bytes_ / total) * collective.bytes,
                collectives=[op],
            )


def _is_masked(value: SSAValue) -> bool:
    """Return whether a value is a tensor, or zeros, by one condition for all elements."""
    op = value.owner
    if isinstance(op, MulOp):
        return any(_is_condition(_moved(each)) for each in op.operands)
    return isinstance(op, SelectOp) and _is_condition(_moved(op.pred)) and any(map(_is_zero, op.operands[1:]))


def _is_condition(value: SSAValue) -> bool:
    return not rank(value.type) and element_type(value) == i1


def _is_zero(value: SSAValue) -> bool:
    return uniform_number(_moved(value)) == 0


def _moved(value: SSAValue) -> SSAValue:
    """Return the value that a value is cast or broadcast from."""
    while isinstance(value.owner, BroadcastInDimOp | ConvertOp):
        value = value.owner.operands[0]
    return value


def _reduced(value: SSAValue, most: float, is_masked: bool) -> list[SSAValue]:
    """Return the first values of at most these bytes on each path from a value; none if a path has none.

    The operations on the paths are linear unless the value is masked.
    """
    found: list[SSAValue] = []
    for op in users_through(value, lambda op: [each for each in op.results if value_bytes(each) > most]):
        if not op.results or (op.regions and not is_pure(op)) or not (is_masked or _is_sum_or_linear(op)):
            return []
        found += [each for each in op.results if value_bytes(each) <= most]
    return found


def _is_written_sum(op: Operation | None) -> bool:
    """Return whether an operation of the unpartitioned program is a sum over devices."""
    return isinstance(op, AllReduceOp) and region_reduction(op.computation) == "sum"


def _is_sum_or_linear(op: Operation) -> bool:
    """Return whether an operation sums elements, or commutes with sums."""
    is_sum = isinstance(op, ReduceOp) and operation_reduction(op) == "sum"
    return is_sum or any(is_linear(op, operand) for operand in op.operands)
