"""Operation -> block operation: the one place that knows which operations have one."""

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.ir import Operation

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.operation import BlockOperation
from sdy.rules.registry import movement

BlockFunction = Callable[[Any, BlockBuilder], float]
"""Adds an operation's axes to a builder made for it, and returns the arithmetic operations of a step.

It may raise `NoBlocks`.
"""


class NoBlocks(Exception):  # noqa: N818  (not an error: it is computed as one block)
    """What a step of the operation reads is not an affine function of its place."""


_functions: dict[str, BlockFunction] = {}


def register(*names: str) -> Callable[[BlockFunction], BlockFunction]:
    """A decorator that makes a function that of the operations called `names`.

    Raises:
        ValueError: operations of one of these names have one already.
    """

    def add(function: BlockFunction) -> BlockFunction:
        for name in names:
            if name in _functions:
                raise ValueError(f"operations called '{name}' are block operations already")
            _functions[name] = function
        return function

    return add


def _movement(name: str) -> BlockFunction | None:
    """What only moves elements, as its sharding rule says it, costs nothing."""
    move = movement(name)

    def function(op: Operation, block: BlockBuilder) -> float:
        assert move is not None
        move(op, block)
        return 0

    return None if move is None else function


def block_operation(op: Operation) -> BlockOperation | None:
    """`op` as a block operation, or None where it is not one, or where a shape is dynamic."""
    function = _functions.get(op.name) or _movement(op.name)
    types = (*op.operand_types, *op.result_types)
    if function is None or any(isinstance(type_, ShapedType) and DYNAMIC_INDEX in type_.get_shape() for type_ in types):
        return None
    builder = BlockBuilder(op)
    try:
        return builder.build(function(op, builder))
    except NoBlocks:
        return None
