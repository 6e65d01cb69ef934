"""The order that the comparator of a sort defines."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from sdy.diagnostics import DiagnosticError
from sdy.ir.walking import captured_values
from sdy.passes.python.literals import Array, dtype_of
from sdy.stablehlo.sort import SortOp


class Order(NamedTuple):
    """A lexicographic order of the first operands of a sort."""

    keys: int
    descending: bool


def order_of(op: SortOp) -> Order:
    """Return the order of `op`, found by comparing samples of its elements.

    Raises:
        NotImplementedError: The comparator is not an order that `lax.sort` or `jnp.argsort` have.
    """
    candidates = [Order(keys, descending=False) for keys in range(1, len(op.inputs) + 1)]
    candidates.append(Order(1, descending=True))
    pairs = _sample_pairs([dtype_of(value) for value in op.inputs])
    compared = [_compared(op, pair) for pair in pairs]
    for order in candidates:
        if all(result == _is_before(pair, order) for pair, result in zip(pairs, compared, strict=True)):
            return order
    raise NotImplementedError("its comparator is neither ascending nor descending order of the first operands")


def _sample_pairs(dtypes: list[np.dtype[Any]]) -> list[tuple[Array, ...]]:
    """Return arguments of the comparator: two elements of each operand."""
    by_type = [_samples(dtype) for dtype in dtypes]
    pairs: list[tuple[Array, ...]] = []
    for depth, samples in enumerate(by_type):
        equal = [(other[0], other[0]) for other in by_type[:depth]]
        rest = [(other[1], other[0]) for other in by_type[depth + 1 :]]
        for one, two in product(samples, samples):
            pairs.append(tuple(value for pair in (*equal, (one, two), *rest) for value in pair))
    return pairs


def _samples(dtype: np.dtype[Any]) -> list[Array]:
    if dtype == np.bool_:
        return [np.array(False), np.array(True)]
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return [np.array(value).astype(dtype) for value in (0, 1, 3)]
    return [np.array(value).astype(dtype) for value in (1.0, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan)]


def _is_before(pair: tuple[Array, ...], order: Order) -> bool:
    for key in range(order.keys):
        one, two = pair[2 * key], pair[2 * key + 1]
        if order.descending:
            one, two = two, one
        if bool(one != one) or bool(two != two):
            if bool(one != one) and bool(two != two):
                continue
            return bool(two != two)
        if one != two:
            return bool(one < two)
    return False


def _compared(op: SortOp, pair: tuple[Array, ...]) -> bool:
    from sdy.interpreter.machine import run_function  # few programs need it

    if captured_values(op):
        raise NotImplementedError("its comparator uses values from around the sort")
    body = op.comparator.clone()
    last = body.block.last_op
    assert isinstance(last, Operation)
    returned = [*last.operands]
    body.block.erase_op(last)
    body.block.add_op(ReturnOp(*returned))
    types = FunctionType.from_lists([argument.type for argument in body.block.args], [returned[0].type])
    function = FuncOp("compare", types, body)
    try:
        return bool(run_function(ModuleOp([function]), function, pair)[0])
    except DiagnosticError as problem:
        raise NotImplementedError("its comparator cannot be evaluated") from problem
