"""Construction of the block graph of a program."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from sdy.array_types import array_type
from sdy.blocks import Access, BlockOperation, block_operation, operands_of
from sdy.blocks.projection import Projection
from sdy.box import Box, ints
from sdy.diagnostics import op_error
from sdy.ir.companions import clone
from sdy.ir.elements import splat
from sdy.passes.blocks.block_shapes import BlockShapeOf, can_be_computed
from sdy.passes.blocks.expand import expand
from sdy.passes.blocks.graph import (
    BlockGraph,
    BlockOp,
    Part,
    Shard,
    StoredTensor,
    Tensor,
    TensorCopy,
    TensorView,
    Work,
    remove_dead_parts,
)
from sdy.passes.blocks.views import view_parts
from sdy.passes.jax.program.interface import function_to_run
from sdy.stablehlo import ConstantOp
from sdy.stablehlo.checks.shape_checks import tensor_type


def block_graph(module: ModuleOp, block_shape: BlockShapeOf) -> BlockGraph:
    """Return the block graph of the main function of `module`.

    Calls are inlined, and operations that only move elements become views. An operation without block operation is not
    partitioned.

    Args:
        module: The program, which is not changed.
        block_shape: Chooses the shape of the blocks of each operation.

    Raises:
        DiagnosticError: A block cannot be computed independently, or a value is not an array.
    """
    module = clone(module)
    expand(module)
    return remove_dead_parts(_GraphBuilder(block_shape).graph(function_to_run(module)))


class _GraphBuilder:
    """Builder of the tensors and works of a program from its operations in order."""

    def __init__(self, block_shape: BlockShapeOf):
        self._block_shape = block_shape
        self._of_value: dict[SSAValue, Tensor] = {}
        self._tensors: list[Tensor] = []
        self._works: list[Work] = []
        self._copies: dict[Tensor, StoredTensor] = {}

    def graph(self, main: FuncOp) -> BlockGraph:
        sources = [self._stored(argument, main, f"%arg{number}") for number, argument in enumerate(main.args)]
        for source in sources:
            source.is_source = True
        sinks: tuple[StoredTensor, ...] = ()
        for op in main.body.block.ops:
            if isinstance(op, ReturnOp):
                sinks = tuple(self._with_storage(self._of_value[operand]) for operand in op.operands)
            else:
                self._add(op)
        return BlockGraph(tuple(sources), sinks, tuple(self._tensors), tuple(self._works))

    def _add(self, op: Operation) -> None:
        if isinstance(op, ConstantOp) and self._add_splat(op):
            return
        if all(0 in array_type(result.type, op)[0] for result in op.results):
            for result in op.results:
                self._stored(result, op)
            return
        operands = [self._of_value[operand] for operand in operands_of(op)]
        if parts := view_parts(op, operands):
            result = op.results[0]
            self._of_value[result] = self._new(TensorView(*self._description(result, op), parts))
            return
        blocks = block_operation(op)
        if blocks is None or 0 in blocks.index_shape or not blocks.axes:
            self._add_whole(op, operands)
        else:
            self._add_in_blocks(op, operands, blocks)

    def _add_splat(self, op: ConstantOp) -> bool:
        """Add a splat constant as a view of one element."""
        value = splat(op.value)
        type_ = tensor_type(op.output)
        if value is None or not type_.get_num_dims():
            return False
        scalar = ConstantOp(DenseIntOrFPElementsAttr(cast(Any, TensorType(type_.element_type, ())), value.data))
        self._add_whole(scalar, [])
        name, shape, dtype = self._description(op.output, op)
        everywhere = Projection.of(np.zeros((len(shape), 0), np.int64), [])
        part = Part(Box.of_shape(shape), self._of_value[scalar.output], everywhere)
        self._of_value[op.output] = self._new(TensorView(name, shape, dtype, (part,)))
        return True

    def _add_whole(self, op: Operation, operands: Sequence[Tensor]) -> None:
        tensors = [self._stored(result, op) for result in op.results]
        results = tuple(tensor for tensor in tensors if 0 not in tensor.shape)
        work = BlockOp(op.name, tuple(operands), results, op, None)
        reads = tuple(None if 0 in tensor.shape else Box.of_shape(tensor.shape) for tensor in operands)
        work.shards.append(Shard(work, None, reads, (0,) * len(results)))
        self._works.append(work)

    def _add_in_blocks(self, op: Operation, operands: Sequence[Tensor], blocks: BlockOperation) -> None:
        shape = self._block_shape(op, blocks)
        if not can_be_computed(blocks, shape):
            raise op_error(
                op, f"blocks of shape {tuple(shape)} of {blocks.index_shape} cannot be computed independently"
            )
        indices = blocks.index_space.blocks(shape)
        results = tuple(
            self._stored(result, op, chunks=access.image(indices))
            for result, access in zip(op.results, blocks.results, strict=True)
        )
        work = BlockOp(op.name, tuple(operands), results, op, blocks)
        for number, index in enumerate(indices):
            reads = tuple(_touched(access, index) for access in blocks.operands)
            work.shards.append(Shard(work, index, reads, (number,) * len(results)))
        self._works.append(work)

    def _with_storage(self, tensor: Tensor) -> StoredTensor:
        """Return `tensor`, or a copy of a view, with chunks no larger than those that the view reads."""
        if isinstance(tensor, StoredTensor):
            return tensor
        if tensor in self._copies:
            return self._copies[tensor]
        chunks = _chunks_of_view(tensor)
        copy = self._copies[tensor] = StoredTensor(f"{tensor.name} copied", tensor.shape, tensor.dtype, chunks)
        self._tensors.append(copy)
        work = TensorCopy("copy", (tensor,), (copy,))
        work.shards += [Shard(work, chunk, (chunk,), (number,)) for number, chunk in enumerate(chunks)]
        self._works.append(work)
        return copy

    def _stored(self, value: SSAValue, op: Operation, name: str = "", chunks: Box | None = None) -> StoredTensor:
        own_name, shape, dtype = self._description(value, op)
        tensor = StoredTensor(name or own_name, shape, dtype, _one_chunk(shape) if chunks is None else chunks)
        self._of_value[value] = self._new(tensor)
        return tensor

    def _new(self, tensor: Tensor) -> Tensor:
        self._tensors.append(tensor)
        return tensor

    def _description(self, value: SSAValue, op: Operation) -> tuple[str, tuple[int, ...], np.dtype[np.generic]]:
        """Return the name, the shape and the element type of a value; raise DiagnosticError if it is not an array."""
        shape, dtype = array_type(value.type, op)
        return f"%{len(self._tensors)}", shape, dtype


def _one_chunk(shape: Sequence[int]) -> Box:
    """Return one chunk of all elements; none of a tensor without elements."""
    ends = np.array(shape, np.int64).reshape(1, len(shape))[: 0 if 0 in shape else 1]
    return Box(np.zeros_like(ends), ends)


def _touched(access: Access, index: Box) -> Box | None:
    """Return the region of the tensor that a block accesses; None if it is all padding."""
    image = access.image(index)
    start, end = np.maximum(image.start, 0), np.minimum(image.end, ints(access.shape))
    return Box(start, end) if (start < end).all() else None


def _chunks_of_view(view: Tensor) -> Box:
    """Partition each part of a view into blocks no larger than the chunks that it reads."""
    assert isinstance(view, TensorView)
    pieces: list[Box] = []
    for part in view.parts:
        size = max(1, _largest_chunk(part.source))
        shape = part.region.shape.tolist()
        for dim in range(len(shape)):
            while np.prod(shape) > size and shape[dim] > 1:
                shape[dim] = -(-shape[dim] // 2)
        pieces.append(part.region.blocks(shape))
    return Box(np.concatenate([piece.start for piece in pieces]), np.concatenate([piece.end for piece in pieces]))


def _largest_chunk(tensor: Tensor) -> int:
    """Return the number of elements of the largest chunk that a tensor reads from."""
    match tensor:
        case StoredTensor():
            return int(tensor.chunks.size.max())
        case TensorView():
            return max(_largest_chunk(part.source) for part in tensor.parts)
        case _:
            return 1
