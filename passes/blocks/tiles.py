"""Blocks of a group of operations: the regions that they read and write, and their programs.

The regions of all blocks are arrays. Blocks whose regions have the same shapes, the same padding, and the same places
relative to each other have the same program; it is printed once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from sdy.blocks import Access
from sdy.box import Box, Ints
from sdy.ir.elements import dense
from sdy.ir.shapes import shape
from sdy.passes.blocks.graph import Regions, ShardProgram
from sdy.passes.blocks.group import Group, Read
from sdy.passes.blocks.local_operation import called_functions, local_program, whole_program
from sdy.passes.blocks.node import Node, is_generated
from sdy.stablehlo import AddOp, BroadcastInDimOp, ConstantOp, ConvertOp, IotaOp, SliceOp
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.text import format


@dataclass(frozen=True, eq=False)
class _Accessed:
    """The regions of a tensor that all blocks access.

    Attributes:
        regions: The regions without padding.
        padding: The positions before each region that are padding or holes, of shape (blocks, rank).
    """

    regions: Regions
    padding: Ints

    @classmethod
    def of(cls, access: Access, index: Box) -> "_Accessed":
        image = access.image(index)
        sizes = np.array(access.shape, np.int64)
        start = np.minimum(np.maximum(image.start, 0), sizes)
        regions = Regions(start, np.maximum(np.minimum(image.end, sizes), start))
        return cls(regions, start * np.array(access.spacing, np.int64) - access.projection.image(index).start)


@dataclass(eq=False)
class Tiles:
    """All blocks of a group."""

    group: Group

    @cached_property
    def ranges(self) -> Box:
        """The range of each class in each block, of shape (blocks, classes)."""
        return Box.of_shape(self.group.extents).blocks(self.group.tile)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.ranges.start)

    def index(self, node: Node) -> Box:
        """Return the block of the index space of an operation in each block."""
        classes = self.group.classes(node)
        return Box(self.ranges.start[:, classes], self.ranges.end[:, classes])

    def read(self, node: Node, operand: int) -> Regions:
        """Return the region of an operand in each block."""
        if node.blocks is None:
            return self._whole(node.values[operand])
        return self._accessed(node, node.blocks.operands[operand]).regions

    def written(self, value: SSAValue) -> Regions:
        """Return the region of a value of the group in each block."""
        node, number = self.group.producers[value]
        if node.blocks is None:
            return self._whole(value)
        return self._accessed(node, node.blocks.results[number]).regions

    def _accessed(self, node: Node, access: Access) -> "_Accessed":
        """Return the regions of an access of an operation, the same object for accesses that move alike."""
        projection = access.projection
        arrays = (projection.matrix, projection.offset, projection.start, projection.shape)
        key = (*self.group.classes(node), access.shape, access.spacing, *(array.tobytes() for array in arrays))
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = _Accessed.of(access, self.index(node))
        return found

    @cached_property
    def _accesses(self) -> dict[tuple[Any, ...], "_Accessed"]:
        return {}

    @cached_property
    def arguments(self) -> Sequence[tuple[SSAValue, Regions]]:
        """The values that blocks read from outside, each region once."""
        return list(dict(self._argument_of.values()).values())

    @cached_property
    def _argument_of(self) -> dict[Read, tuple[int, tuple[SSAValue, Regions]]]:
        """The number of the argument of each operand that is read from outside, with the value and its regions."""
        places: dict[Read, tuple[int, tuple[SSAValue, Regions]]] = {}
        by_value: dict[SSAValue, list[tuple[int, tuple[SSAValue, Regions]]]] = {}
        count = 0
        for read in self.group.reads:
            regions = self.read(*read)
            known = by_value.setdefault(read.value, [])
            same = next((entry for entry in known if _are_equal(entry[1][1], regions)), None)
            if same is None:
                same = (count, (read.value, regions))
                known.append(same)
                count += 1
            places[read] = same
        return places

    @cached_property
    def offsets(self) -> Ints:
        """The first position of each iota in each block, of shape (blocks, iotas)."""
        columns = [
            self.index(node).start[:, node.op.iota_dimension.value.data]
            for node in self.group.nodes
            if isinstance(node.op, IotaOp)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((self.count, 0), np.int64)

    def programs(self) -> tuple[list[ShardProgram], list[int]]:
        """Return the distinct programs of blocks, and the program of each block."""
        columns = np.concatenate(self._signature, axis=1)
        columns = columns[:, (columns != columns[:1]).any(axis=0)]
        _, first, program_of = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        is_short = self.group.is_short
        programs = [ShardProgram(self._program(block), is_short) for block in first.tolist()]
        return programs, program_of.ravel().tolist()

    @cached_property
    def _signature(self) -> list[Ints]:
        """The shapes and relative places on which the program of a block depends."""
        accessed: dict[_Accessed, None] = {}
        moved: dict[tuple[Regions, Regions], None] = {}
        for node in self.group.nodes:
            if node.blocks is not None:
                accessed.update(dict.fromkeys(self._accessed(node, access) for access in node.blocks.accesses))
            pairs = (
                (self.read(node, number), self.written(value))
                for number, value in enumerate(node.values)
                if value in self.group.producers
            )
            moved.update((pair, None) for pair in pairs if pair[0] is not pair[1])
        columns: list[Ints] = [np.zeros((self.count, 1), np.int64), self.ranges.shape]
        for each in accessed:
            columns += [each.regions.end - each.regions.start, each.padding]
        columns += (read.start - written.start for read, written in moved)
        return columns

    def _program(self, number: int) -> str:
        """Return the text of the program of a block, of the regions that it reads and the positions of its iotas."""
        types = [_local_type(value, regions, number) for value, regions in self.arguments]
        position = TensorType(i64, ())
        block = Block(arg_types=[*types, *[position] * self.offsets.shape[1]])
        positions = iter(block.args[len(types) :])
        local: dict[SSAValue, SSAValue] = {}
        for node in self.group.nodes:
            operands = [self._operand(block, node, operand, number, local) for operand in range(len(node.values))]
            results = self._results(block, node, number, operands, positions)
            computed = (result for result in node.op.results if result in self.group.producers)
            local.update(zip(computed, results, strict=True))
        outputs = [local[output] for output in self.group.outputs]
        block.add_op(ReturnOp(*outputs))
        function = FuncOp("main", (list(block.arg_types), [output.type for output in outputs]), Region(block))
        return format(ModuleOp([function, *called_functions(node.op for node in self.group.nodes)]))

    def _operand(
        self, block: Block, node: Node, operand: int, number: int, local: dict[SSAValue, SSAValue]
    ) -> SSAValue:
        value = node.values[operand]
        if value not in self.group.producers:
            return block.args[self._argument_of[Read(node, operand)][0]]
        read, written = self.read(node, operand), self.written(value)
        start = (read.start[number] - written.start[number]).tolist()
        end = (read.end[number] - written.start[number]).tolist()
        if not any(start) and end == list(shape(local[value].type)):
            return local[value]
        part = _slice(local[value], start, end, [1] * len(start))
        block.add_op(part)
        return part.result

    def _results(
        self, block: Block, node: Node, number: int, operands: Sequence[SSAValue], positions: Iterator[SSAValue]
    ) -> Sequence[SSAValue]:
        op = node.op
        if is_generated(op) and isinstance(op, ConstantOp | IotaOp):
            type_ = _local_type(op.results[0], self.written(op.results[0]), number)
            made = _constant(op, type_) if isinstance(op, ConstantOp) else _iota(op, type_, next(positions))
            block.add_ops(made)
            return made[-1].results
        if isinstance(op, SliceOp):
            part = _slice(operands[0], [0] * len(op.strides), shape(operands[0].type), op.strides.get_values())
            block.add_op(part)
            return part.results
        index = self.index(node)[number]
        module = whole_program(op) if node.blocks is None else local_program(op, node.blocks, index)
        function, *_ = module.ops
        body = cast(FuncOp, function).body.block
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, operands, strict=True))
        for each in body.ops:
            if isinstance(each, ReturnOp):
                return [values[result] for result in each.operands]
            block.add_op(each.clone(values))
        raise AssertionError("a function ends with a return")

    def _whole(self, value: SSAValue) -> Regions:
        end = np.tile(np.array(shape(value.type), np.int64), (self.count, 1))
        return Regions(np.zeros_like(end), end)


def _are_equal(one: Regions, other: Regions) -> bool:
    return one is other or (np.array_equal(one.start, other.start) and np.array_equal(one.end, other.end))


def _local_type(value: SSAValue, regions: Regions, number: int) -> TensorType[Any]:
    return TensorType(tensor_type(value).element_type, (regions.end[number] - regions.start[number]).tolist())


def _slice(value: SSAValue, start: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> SliceOp:
    sizes = [-(-(last - first) // stride) for first, last, stride in zip(start, end, strides, strict=True)]
    return SliceOp.create(
        operands=[value],
        result_types=[TensorType(tensor_type(value).element_type, sizes)],
        properties={
            "start_indices": i64_array(*start),
            "limit_indices": i64_array(*end),
            "strides": i64_array(*strides),
        },
    )


def _constant(op: ConstantOp, type_: TensorType[Any]) -> list[Operation]:
    return [ConstantOp(dense(type_, cast(Any, op.value).data.data))]


def _iota(op: IotaOp, type_: TensorType[Any], position: SSAValue) -> list[Operation]:
    """Count in 64 bits from `position` on, and convert: a narrow type may not have the sum."""
    wide = TensorType(i64, type_.get_shape())
    count = IotaOp(op.iota_dimension.value.data, wide)
    first = BroadcastInDimOp(position, [], wide)
    total = AddOp.create(operands=[count.output, first.results[0]], result_types=[wide])
    converted = ConvertOp.create(operands=[total.results[0]], result_types=[type_])
    return [count, first, total, converted]
