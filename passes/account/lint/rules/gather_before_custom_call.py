"""Tensors are gathered, because a kernel or another custom call is given them whole.

The compiler does not know what a custom call computes, so that each device makes all of it from all of its operands:
the work is done as often as there are devices. A kernel that works on each batch and each head by itself can be told
so.

Before::

    def attention(q, k, v):
        return jax.ffi.ffi_call("flash_attention", jax.ShapeDtypeStruct(q.shape, q.dtype))(q, k, v)

After::

    @sdy.register_op("b h s^ d^, b h s^ d^, b h s^ d^ -> b h s^ d^")
    def attention(q, k, v): ...
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation

from sdy.operators.call import operator_name
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.finding import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.computed_whole import named
from sdy.passes.common.rule_to_write import rule_to_write
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.custom_call import CustomCallOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """The all-gathers that custom calls and annotated operators ask for."""
    for collective in program.collectives:
        op = collective.source
        if collective.kind == "all-gather" and op is not None and (called := _kernel(op)):
            yield _suspicion(collective, op, called)


def is_kernel(op: Operation) -> bool:
    """Whether the compiler does not look into `op`."""
    return _kernel(op) is not None


def _kernel(op: Operation) -> str | None:
    """What to call an operation that the compiler does not look into; None for another one."""
    if name := operator_name(op):
        return f"the operator {name}"
    return named(op) if isinstance(op, CustomCallOp | UnregisteredOp) else None


def _suspicion(collective: Collective, op: Operation, called: str) -> Suspicion:
    axes, whole = quoted_axes(collective.axes), collective.op.results[0].type
    if operator_name(op):
        cure = "write the dimensions that it works on one by one without ^ in its annotation"
    elif sharding_rule(op) is not None:
        cure = "split the dimensions that it works on one by one, such as those of a batch, and no others"
    else:
        line = rule_to_write(op, op.operand_types, op.result_types)
        cure = line or "call it inside jax.shard_map, which says what each device is given"
    return Suspicion(
        op,
        f"a tensor is gathered along {axes} to {whole} for {called}",
        cure,
        received=collective.bytes,
        collectives=[collective.op],
    )
