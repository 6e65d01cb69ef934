"""Tensors are all-gathered because a kernel or another custom call takes them replicated.

The compiler does not know what a custom call computes. Each device therefore computes all of it from replicated
operands, as many times as there are devices. A sharding rule declares the dimensions that are independent, such as the
batch and the heads of an attention kernel.

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
from sdy.passes.account.lint.findings import Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.wording import quoted_axes
from sdy.passes.common.replication_cost import describe_op
from sdy.passes.common.suggested_rule import suggest_rule
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.custom_call import CustomCallOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find all-gathers for custom calls and registered operators."""
    for collective in program.collectives:
        op = collective.source
        if collective.kind == "all-gather" and op is not None and (called := _kernel(op)):
            yield _suspicion(collective, op, called)


def is_kernel(op: Operation) -> bool:
    """Return whether `op` is opaque to the compiler: a custom call, a registered operator or an unregistered op."""
    return _kernel(op) is not None


def _kernel(op: Operation) -> str | None:
    """Return the name of an opaque operation, or None for any other."""
    if name := operator_name(op):
        return f"the operator {name}"
    return describe_op(op) if isinstance(op, CustomCallOp | UnregisteredOp) else None


def _suspicion(collective: Collective, op: Operation, called: str) -> Suspicion:
    axes, gathered = quoted_axes(collective.axes), collective.op.results[0].type
    if operator_name(op):
        cure = "write its independent dimensions, such as a batch, without ^ in its annotation"
    elif sharding_rule(op) is not None:
        cure = "shard only its independent dimensions, such as a batch"
    else:
        line = suggest_rule(op, op.operand_types, op.result_types)
        cure = line or "call it inside jax.shard_map, on the shards of each device"
    return Suspicion(
        op,
        f"a tensor is all-gathered over {axes} to {gathered} for {called}",
        cure,
        received=collective.bytes,
        collectives=[collective.op],
        cause=(called, collective.axes),
    )
