"""Operations that JAX lowers one of its functions to, such as `jax.nn.softmax`, to be printed as a call of it.

They match if the function, lowered for the same argument, has the same operations, and others use the results of few of
them but the last one: a gradient uses the differences from the mean of a variance.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

import jax
import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, IRNode, Operation, OpResult, SSAValue

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.python.constant_scalars import fold_scalars
from sdy.passes.python.library_functions import NAMESPACES
from sdy.passes.python.literals import known_elements, optional_dtype_of, unconverted
from sdy.passes.python.names import LibraryCall, LibraryFunction
from sdy.text import parse

_Type = tuple[tuple[int, ...], np.dtype[Any]]
"""The shape and the element type of an array."""

_Keywords = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class _Pattern:
    """A function of JAX, and the type of the last of its operations."""

    name: str
    last: type[Operation]
    options: tuple[_Keywords, ...] = ((),)
    """The keyword arguments that are tried."""
    reduces: bool = False
    """True if it reduces the dimensions `axis`."""
    of_all: bool = False
    """True if it reduces all dimensions without `axis`."""


_KEPT: tuple[_Keywords, ...] = ((), (("keepdims", True),))

_PATTERNS = (
    _Pattern("jax.nn.gelu", stablehlo.MulOp, ((), (("approximate", False),))),
    _Pattern("jax.nn.silu", stablehlo.MulOp),
    _Pattern("jax.nn.mish", stablehlo.MulOp),
    _Pattern("jax.nn.selu", stablehlo.MulOp),
    _Pattern("jax.nn.hard_swish", stablehlo.MulOp),
    _Pattern("jax.nn.softmax", stablehlo.DivOp, reduces=True),
    _Pattern("jax.nn.sigmoid", stablehlo.DivOp),
    _Pattern("jax.nn.log_softmax", stablehlo.SubtractOp, reduces=True),
    _Pattern("jax.nn.log_sigmoid", stablehlo.NegOp),
    _Pattern("jax.nn.softplus", stablehlo.SelectOp),
    _Pattern("jax.nn.leaky_relu", stablehlo.SelectOp),
    _Pattern("jax.nn.logsumexp", stablehlo.AddOp, _KEPT, reduces=True, of_all=True),
    _Pattern("jnp.var", stablehlo.DivOp, _KEPT, reduces=True, of_all=True),
    _Pattern("jnp.mean", stablehlo.DivOp, _KEPT, reduces=True, of_all=True),
    _Pattern("jnp.std", stablehlo.SqrtOp, _KEPT, reduces=True, of_all=True),
    _Pattern("jnp.linalg.norm", stablehlo.SqrtOp, _KEPT, reduces=True),
)

_MOST_PARTS = 3
"""A call is printed if others use at most one in this number of its operations, which are printed beside it."""

_FARTHEST = 20
"""The most operations that are looked at for a reduction before the last one."""


def library_patterns(functions: Sequence[FuncOp], *, x64: bool) -> dict[Operation, LibraryCall]:
    """Return the calls of functions of JAX that operations of `functions` are, by the last of the operations.

    Args:
        functions: The functions.
        x64: True if the file enables 64-bit numbers, on which types of results depend.
    """
    found: dict[Operation, LibraryCall] = {}
    inside: set[Operation] = set()
    with jax.enable_x64(x64), jax.default_matmul_precision(None):
        for op in (op for function in functions for op in reversed([*operations(function)])):
            match = None if op in inside else _match_of(op)
            if match is not None:
                found[op] = match
                inside |= match.inside
    return found


def _match_of(last: Operation) -> LibraryCall | None:
    """Return the call that ends with `last`, if there is one."""
    for pattern in _PATTERNS:
        if type(last) is pattern.last:
            for type_, keywords in _candidates(last, pattern):
                match = _match(
                    last, LibraryFunction(pattern.name, dict(keywords)), _lowered(pattern.name, type_, keywords)
                )
                if match is not None:
                    return match
    return None


def _candidates(last: Operation, pattern: _Pattern) -> Iterator[tuple[_Type, _Keywords]]:
    """Yield types of the argument, and keyword arguments, with which `last` could be the end of the function."""
    argument, axis = last.results[0], _Keywords()
    if pattern.reduces:
        reduction = _reduction_before(last)
        if reduction is None or not reduction.dimensions.get_values():
            return
        argument, dims = reduction.inputs[0], reduction.dimensions.get_values()
        axis = (("axis", dims[0] if len(dims) == 1 else tuple(dims)),)
        if pattern.of_all and len(dims) == len(shape(argument.type)):
            axis = ()
    dtype = optional_dtype_of(argument)
    if dtype is not None and dtype.kind == "f":
        for option in pattern.options:
            yield (shape(argument.type), dtype), (*axis, *option)


def _reduction_before(op: Operation) -> stablehlo.ReduceOp | None:
    """Return the nearest reduction of one array that `op` depends on, if it is near."""
    pending = [op]
    for _ in range(_FARTHEST):
        if not pending:
            return None
        first = pending.pop(0)
        if isinstance(first, stablehlo.ReduceOp) and len(first.inputs) == 1:
            return first
        pending += [operand.op for operand in reversed(first.operands) if isinstance(operand, OpResult)]
    return None


@lru_cache(maxsize=2**10)
def _lowered(name: str, type_: _Type, keywords: _Keywords) -> FuncOp | None:
    """Return the function of JAX for an argument, lowered; None if it does not take it."""
    namespace, _, called = name.rpartition(".")
    function = getattr(attrgetter(NAMESPACES[namespace])(jax), called)
    try:
        text = jax.jit(partial(function, **dict(keywords))).lower(jax.ShapeDtypeStruct(*type_)).as_text()
    except Exception:
        return None
    module = parse(text)
    inline_calls(module)
    fold_scalars(module)
    return main_function(module)


def _match(last: Operation, function: LibraryFunction, lowered: FuncOp | None) -> LibraryCall | None:
    """Return the call of `function` if `last` and the operations before it are those of `lowered`."""
    if lowered is None or (end := lowered.get_return_op()) is None or len(lowered.args) != 1:
        return None
    pairs: dict[SSAValue, SSAValue] = {}
    inside: dict[Operation, None] = {}
    pending: list[tuple[SSAValue, SSAValue]] = [(end.operands[0], last.results[0])]
    while pending:
        wanted, value = map(unconverted, pending.pop())
        if (known := pairs.get(wanted)) is not None:
            if known is not value:
                return None
            continue
        if wanted.type != value.type:
            return None
        pairs[wanted] = value
        elements = known_elements(wanted)
        if elements is not None:
            others = known_elements(value)
            if others is None or not np.array_equal(elements, others, equal_nan=elements.dtype.kind == "f"):
                return None
        elif not isinstance(wanted, BlockArgument):
            if (
                not isinstance(value, OpResult)
                or not isinstance(wanted, OpResult)
                or not _is_equal(wanted.op, value.op)
            ):
                return None
            inside[value.op] = None
            pending += zip(wanted.op.operands, value.op.operands, strict=True)
    parts = _parts(inside, last)
    if _MOST_PARTS * len(parts) > len(inside):
        return None
    return LibraryCall(function, pairs[lowered.args[0]], frozenset(inside) - parts)


def _parts(inside: Collection[Operation], last: Operation) -> set[Operation]:
    """Return the operations of a call before its `last` one that others use, with those of the call that they need."""
    users = {op: {use.operation for result in op.results for use in result.uses} for op in inside if op is not last}
    parts = {op for op, of_op in users.items() if any(user not in inside for user in of_op)}
    pending = [*parts]
    while pending:
        needed = {operand.op for operand in pending.pop().operands if isinstance(operand, OpResult)}
        new = [op for op in needed if op in inside and op not in parts]
        parts.update(new)
        pending += new
    return parts


def _is_equal(wanted: Operation, op: Operation) -> bool:
    """Return whether two operations are equal but for their operands."""
    if type(wanted) is not type(op) or len(wanted.operands) != len(op.operands) or wanted.parent is None:
        return False
    pairs: dict[IRNode | SSAValue, IRNode | SSAValue] = dict(zip(wanted.operands, op.operands, strict=True))
    if op.parent is not None:
        pairs[wanted.parent] = op.parent
    return wanted.is_structurally_equivalent(op, pairs)
