"""Construction of the block graph of a program."""

from collections.abc import Collection, Sequence
from typing import TypeGuard, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from sdy.array_types import array_type
from sdy.box import Box
from sdy.diagnostics import op_error
from sdy.interpreter.values import constant_array
from sdy.ir.companions import clone
from sdy.ir.shapes import shape, shape_of
from sdy.passes.blocks.arrays import Array
from sdy.passes.blocks.block_shapes import BlockShapeOf, Within, can_be_computed, choose_shapes, choose_within
from sdy.passes.blocks.expand import expand
from sdy.passes.blocks.fusion import Program, UnfitBlocksError, fuse
from sdy.passes.blocks.graph import (
    BlockGraph,
    BlockOp,
    Regions,
    StoredTensor,
    Tensor,
    TensorCopy,
    TensorView,
    Work,
    remove_dead_parts,
)
from sdy.passes.blocks.group import Group
from sdy.passes.blocks.node import Node, is_generated
from sdy.passes.blocks.tiles import Tiles
from sdy.passes.blocks.views import view_parts
from sdy.passes.driver import check_is_spmd
from sdy.passes.jax.program.interface import function_to_run
from sdy.stablehlo import ConstantOp


def block_graph(module: ModuleOp, block_shape: BlockShapeOf) -> BlockGraph:
    """Return the block graph of the main function of `module`.

    Calls are inlined. Operations are fused where one reads the blocks that the other writes; operations that only move
    elements become part of those that read them, or views. An operation without block operation is not partitioned.

    Args:
        module: The program, which is not changed.
        block_shape: `within(limit)`, which chooses the blocks of all operations together, or a function that chooses
            the shape of the blocks of each operation.

    Raises:
        DiagnosticError: A block cannot be computed independently, or does not fit, or a value is not an array.
    """
    check_is_spmd(module)
    module = clone(module)
    expand(module)
    return _GraphBuilder(function_to_run(module)).graph(block_shape)


class _GraphBuilder:
    """Builder of the tensors and works of a program."""

    def __init__(self, main: FuncOp):
        self._main = main
        self._of_value: dict[SSAValue, Tensor] = {}
        self._tensors: list[Tensor] = []
        self._works: list[Work] = []
        self._copies: dict[Tensor, StoredTensor] = {}

    def graph(self, block_shape: BlockShapeOf) -> BlockGraph:
        limit = block_shape.limit if isinstance(block_shape, Within) else 0
        sources = [self._stored(argument, f"%arg{number}") for number, argument in enumerate(self._main.args)]
        constants = {self._stored(op.output): _elements(op) for op in self._main.body.block.ops if _is_source(op)}
        for source in (*sources, *constants):
            source.is_source = True
        returned = next(list(op.operands) for op in self._main.body.block.ops if isinstance(op, ReturnOp))
        for group in self._groups(returned, block_shape, limit):
            self._add(group)
        sinks = tuple(self._with_storage(self._tensor(value), limit // 2) for value in returned)
        return remove_dead_parts(BlockGraph(tuple(sources), constants, sinks, tuple(self._tensors), tuple(self._works)))

    def _groups(self, returned: Sequence[SSAValue], block_shape: BlockShapeOf, limit: int) -> Sequence[Group]:
        """Fuse the operations; store moved elements that an operation reads if its blocks do not fit with the move."""
        stored: set[SSAValue] = set()
        while True:
            program = self._program(returned, stored)
            try:
                return fuse(program, _chooser(program, block_shape), limit)
            except UnfitBlocksError as problem:
                moved = {value for node in problem.nodes for value in program.moved(node)} - stored
                if not moved:
                    raise
                stored |= moved

    def _program(self, returned: Sequence[SSAValue], stored: Collection[SSAValue]) -> Program:
        """Return the operations that the results depend on, and the values that are stored or views.

        Args:
            returned: The results of the program.
            stored: Results of operations that only move elements, which no other operation computes anew.
        """
        live: set[SSAValue] = {*returned}
        kept: set[SSAValue] = {*returned, *stored}
        nodes: list[Node] = []
        views: list[Operation] = []
        for position, op in reversed([*enumerate(self._main.body.block.ops)]):
            if isinstance(op, ReturnOp) or live.isdisjoint(op.results) or _is_source(op):
                continue
            if all(0 in shape(result.type) for result in op.results):
                continue
            node = Node.of(op, position)
            live.update(node.values)
            if len(op.results) == 1 and _is_view(op):
                if not node.is_view or op.results[0] in kept:
                    kept.update(op.operands)
                if not node.is_view or op.results[0] in stored:
                    views.append(op)
                    continue
            elif not kept.isdisjoint(op.results):
                node.is_view = False
            nodes.append(node)
        return Program(nodes[::-1], kept, views[::-1])

    def _add(self, group: Group) -> None:
        tiles = Tiles(group)
        last = group.computed[-1]
        results: list[StoredTensor] = []
        for output in group.outputs:
            written = tiles.written(output)
            results.append(self._stored(output, chunks=Box(written.start, written.end)))
        operands = tuple(self._tensor(value) for value, _ in tiles.arguments)
        programs, program_of = tiles.programs()
        index = tiles.index(last) if last.extents else None
        reads = tuple(regions for _, regions in tiles.arguments)
        self._works.append(
            BlockOp(
                _name(group),
                operands,
                tuple(results),
                reads,
                index,
                last.op,
                programs,
                program_of,
                tiles.offsets,
                group.intermediate_bytes,
            )
        )

    def _tensor(self, value: SSAValue) -> Tensor:
        """Return the tensor of a value: a result of a group, or a view of one."""
        if value not in self._of_value:
            op = value.owner
            assert isinstance(op, Operation)
            if 0 in shape(value.type):
                return self._stored(value)
            parts = view_parts(op, [self._tensor(operand) for operand in op.operands])
            assert parts is not None
            self._of_value[value] = self._new(TensorView(*self._description(value), parts))
        return self._of_value[value]

    def _with_storage(self, tensor: Tensor, limit: int) -> StoredTensor:
        """Return `tensor`, or a copy of a view or an argument, with chunks of at most `limit` bytes."""
        if isinstance(tensor, StoredTensor) and not tensor.is_source:
            return tensor
        if tensor in self._copies:
            return self._copies[tensor]
        chunks = _chunks_of_copy(tensor, limit)
        copy = self._copies[tensor] = StoredTensor(f"{tensor.name} copied", tensor.shape, tensor.dtype, chunks)
        self._tensors.append(copy)
        self._works.append(TensorCopy("copy", (tensor,), (copy,), (Regions(chunks.start, chunks.end),), chunks))
        return copy

    def _stored(self, value: SSAValue, name: str = "", chunks: Box | None = None) -> StoredTensor:
        own_name, sizes, dtype = self._description(value)
        tensor = StoredTensor(name or own_name, sizes, dtype, _one_chunk(sizes) if chunks is None else chunks)
        self._of_value[value] = self._new(tensor)
        return tensor

    def _new(self, tensor: Tensor) -> Tensor:
        self._tensors.append(tensor)
        return tensor

    def _description(self, value: SSAValue) -> tuple[str, tuple[int, ...], np.dtype[np.generic]]:
        """Return the name, the shape and the element type of a value; raise DiagnosticError if it is not an array."""
        where = value.owner if isinstance(value.owner, Operation) else self._main
        return f"%{len(self._tensors)}", *array_type(value.type, where)


def _chooser(program: Program, block_shape: BlockShapeOf):
    if isinstance(block_shape, Within):
        return choose_within(block_shape.limit)
    shapes: dict[Node, Sequence[int]] = {}
    for node in program.nodes:
        if not node.is_view and node.blocks is not None:
            chosen = shapes[node] = tuple(block_shape(node.op, node.blocks))
            if not can_be_computed(node.blocks, chosen):
                raise op_error(node.op, f"blocks of shape {chosen} of {node.extents} cannot be computed independently")
    return choose_shapes(shapes)


def _is_source(op: Operation) -> TypeGuard[ConstantOp]:
    """Return whether `op` is a constant whose elements blocks read as they read an argument."""
    return (
        isinstance(op, ConstantOp)
        and isinstance(op.value, DenseIntOrFPElementsAttr)
        and not is_generated(op)
        and 0 not in shape_of(op.output)
    )


def _elements(op: ConstantOp) -> Array:
    return constant_array(cast(DenseIntOrFPElementsAttr, op.value), array_type(op.output.type, op)[1])


def _is_view(op: Operation) -> bool:
    """Return whether the result of `op` can be a view of its operands."""
    operands = [Tensor("", shape(operand.type), np.dtype(np.int8)) for operand in op.operands]
    return view_parts(op, operands) is not None


def _name(group: Group) -> str:
    """Return the names of the operations of a group, each once."""
    first, *others = dict.fromkeys(node.op.name for node in group.computed)
    return " + ".join([first, *(name.partition(".")[2] for name in others)])


def _one_chunk(sizes: Sequence[int]) -> Box:
    """Return the chunk of a tensor in one piece; none for a tensor without elements."""
    count = 0 if 0 in sizes else 1
    return Box(np.zeros((count, len(sizes)), np.int64), np.tile(np.array(sizes, np.int64), (count, 1)))


def _chunks_of_copy(tensor: Tensor, limit: int) -> Box:
    """Partition a tensor into a grid of chunks of at most `limit` bytes; 0 is the size of those that it reads."""
    if 0 in tensor.shape:
        return _one_chunk(tensor.shape)
    size = limit // tensor.dtype.itemsize if limit else _largest_chunk(tensor)
    sizes = list(tensor.shape)
    for dim in range(len(sizes)):
        while np.prod(sizes) > size and sizes[dim] > 1:
            sizes[dim] = -(-sizes[dim] // 2)
    return Box.of_shape(tensor.shape).blocks(sizes)


def _largest_chunk(tensor: Tensor) -> int:
    """Return the number of elements of the largest chunk that a tensor reads from, which may be larger than itself."""
    match tensor:
        case StoredTensor():
            return int(tensor.chunks.size.max(initial=1))
        case TensorView():
            return max(_largest_chunk(part.source) for part in tensor.parts)
        case _:
            return 1
