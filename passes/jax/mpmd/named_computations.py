"""Stages and microbatches of a JAX program as named computations and calls of the MPMD dialect.

Stages and microbatches are functions of `jax.jit` with names; jax differentiates, batches and recomputes them as any
other. In a module that jax has lowered, they are calls:

    %0:2 = call @mpmd_stage1(%w, %x) ... loc("jvp(jit(mpmd_stage1))")
    %1 = call @mpmd_stage1_0(%0#1, %dy) ... loc("transpose(jvp(jit(mpmd_stage1)))")

    %0:2 = mpmd.named_computation<"stage1"> (%w, %x) ...
    %1 = mpmd.named_computation<"stage1"(1)> (%0#1, %dy) ...

The location of a call has the transformations that jax applied.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
from xdsl.dialects.builtin import (
    CallSiteLoc,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NameLoc,
    Signedness,
    SymbolRefAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from sdy.diagnostics import error
from sdy.ir.building import copy_body
from sdy.ir.walking import operations_in_block
from sdy.mpmd import CallOp as MicrobatchCallOp
from sdy.mpmd import NamedComputationOp, ReturnOp
from sdy.mpmd.attribute_syntax import UserOrigin
from sdy.mpmd.attributes import UserOriginAttr
from sdy.passes.common.call_graph import calls_in, functions
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.symbol_dce import erase_dead_symbols
from sdy.passes.jax.api.accumulate import MICROBATCH
from sdy.passes.mpmd.scheduled_calls import stage_name, stage_of

_STAGE = re.compile(r"mpmd_(\w+?)(_\d+)?")
_RECOMPUTED = "rematted_computation"
_COUNTER = "call_counter"


def as_stage(stage: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` under `jax.jit`, with a name that tells its stage."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__name__ = f"mpmd_{stage_name(stage)}"
    return jax.jit(call)


def name_computations(module: ModuleOp) -> int:
    """Replace the calls of stages and microbatches by MPMD operations, inline all others, and count microbatches.

    Raises:
        DiagnosticError: A stage or a microbatch is called in a loop or in another stage, or a stage reads what a later
            one computes.
    """
    inline_calls(module, selects=lambda call, function: not _is_marked(function.sym_name.data))
    erase_dead_symbols(module)
    bodies = {function.sym_name.data: function for function in functions(module)}
    microbatches = 0
    for call in calls_in(module):
        name = call.callee.string_value()
        if (stage := _stage_of(name)) is not None:
            _check_parent(call, f"stage {stage}")
            body = copy_body(bodies[name].body)
            returned = body.block.last_op
            assert returned is not None
            Rewriter.replace_op(returned, ReturnOp(*returned.operands))
            origin = UserOriginAttr(UserOrigin(stage_name(stage), _transpose_count(call.location)))
            new = NamedComputationOp.create(
                operands=call.operands, result_types=call.result_types, properties={"origin": origin}, regions=[body]
            )
        elif name.startswith(MICROBATCH):
            _check_parent(call, "a microbatch")
            new = MicrobatchCallOp.create(
                operands=call.operands,
                result_types=call.result_types,
                properties={"callee": SymbolRefAttr(name)},
                attributes={_COUNTER: IntegerAttr(microbatches, IntegerType(32, Signedness.UNSIGNED))},
            )
            microbatches += 1
        else:
            continue
        new.location = call.location
        Rewriter.replace_op(call, new)
    erase_dead_symbols(module)
    for function in functions(module):
        _check_order(function)
    return max(microbatches, 1)


def _is_marked(name: str) -> bool:
    return _stage_of(name) is not None or name.startswith(MICROBATCH)


def _stage_of(name: str) -> int | None:
    match = _STAGE.fullmatch(name)
    return None if match is None else stage_of(match[1])


def _transpose_count(location: Attribute) -> int:
    """Return how often jax transposed what has this location; 0 if it is recomputed for a transpose."""
    names = "/".join(_names_in(location))
    return 0 if _RECOMPUTED in names else names.count("transpose(")


def _names_in(location: Attribute) -> Sequence[str]:
    """Return the names of a location, and of the calls that were inlined around it."""
    match location:
        case NameLoc():
            return (location.desc.data,)
        case CallSiteLoc():
            return *_names_in(location.callee), *_names_in(location.caller)
        case _:
            return ()


def _check_parent(call: CallOp, what: str) -> None:
    """Raise DiagnosticError for a call in a loop or in a stage."""
    parent = call.parent_op()
    assert parent is not None
    if not isinstance(parent, FuncOp):
        raise error(
            call,
            f"{what} is called in a '{parent.name}', which runs in one program; accumulate microbatches by "
            "sdy.accumulate, and call stages outside of loops and conditionals",
        )
    if (outer := _stage_of(parent.sym_name.data)) is not None:
        raise error(call, f"{what} is called in stage {outer}; a stage cannot have others in it")


def _check_order(function: FuncOp) -> None:
    """Raise DiagnosticError for a forward that reads what the forward of a later stage computes."""
    latest: dict[SSAValue, int] = {}
    for op in operations_in_block(function.body.block):
        stage = max((latest.get(operand, -1) for operand in op.operands), default=-1)
        if isinstance(op, NamedComputationOp):
            origin = op.origin.data
            if origin.transpose_count:
                continue
            own = stage_of(origin.name)
            assert own is not None
            if stage > own:
                raise error(op, f"stage {own} reads a result of stage {stage}, which comes later")
            stage = own
        latest |= dict.fromkeys(op.results, stage)
