"""Registry of block operations, by the name of the operation."""

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.ir import Operation

from sdy.blocks.builder import BlockBuilder
from sdy.blocks.operation import BlockOperation
from sdy.rules.registry import movement

BlockFunction = Callable[[Any, BlockBuilder], float]
"""Adds the axes of an operation to a new builder, and returns the arithmetic operations of a step.

May raise `NoBlocks`.
"""


class NoBlocks(Exception):  # noqa: N818  (not an error: the operation is computed as one block)
    """The region that a step reads is not an affine function of its index."""


_functions: dict[str, BlockFunction] = {}


def register(*names: str) -> Callable[[BlockFunction], BlockFunction]:
    """Register the decorated function for operations called `names`.

    Raises:
        ValueError: A name has been registered before.
    """

    def add(function: BlockFunction) -> BlockFunction:
        for name in names:
            if name in _functions:
                raise ValueError(f"a function for '{name}' has been registered before")
            _functions[name] = function
        return function

    return add


def _movement(name: str) -> BlockFunction | None:
    """Return a function for an operation that only moves elements, from its sharding rule; its steps cost nothing."""
    move = movement(name)

    def function(op: Operation, block: BlockBuilder) -> float:
        assert move is not None
        move(op, block)
        return 0

    return None if move is None else function


def block_operation(op: Operation) -> BlockOperation | None:
    """Return `op` as a block operation; None if it is not one, or has a dynamic shape."""
    function = _functions.get(op.name) or _movement(op.name)
    types = (*op.operand_types, *op.result_types)
    if function is None or any(isinstance(type_, ShapedType) and DYNAMIC_INDEX in type_.get_shape() for type_ in types):
        return None
    builder = BlockBuilder(op)
    try:
        return builder.build(function(op, builder))
    except NoBlocks:
        return None
