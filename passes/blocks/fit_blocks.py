"""`sdy-fit-blocks`: rewrite operations whose smallest blocks exceed a size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod, sqrt
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, i1, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from sdy.blocks import block_operation, operands_of
from sdy.ir.editing import replace
from sdy.ir.shapes import is_static_tensor, shape_of
from sdy.ir.walking import operations
from sdy.passes.blocks.block_shapes import block_bytes, can_be_computed
from sdy.passes.blocks.expand import expand
from sdy.passes.blocks.product_steps import accumulate_if_faster, split_product
from sdy.passes.blocks.split_indexing import gather_slice, scatter_slice, split_gather, split_scatter
from sdy.passes.blocks.split_reductions import split_reduction
from sdy.passes.blocks.unroll_loops import unroll
from sdy.passes.common.loops import loop_trips
from sdy.passes.common.properties import is_pure, value_bytes
from sdy.rule import FactorKind
from sdy.stablehlo import (
    AndOp,
    CaseOp,
    CompareOp,
    DotGeneralOp,
    DotOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    IfOp,
    IotaOp,
    MulOp,
    NotOp,
    OrOp,
    PadOp,
    ReduceOp,
    ReshapeOp,
    ScatterOp,
    SelectAndScatterOp,
    WhileOp,
)
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.reducers import scalar
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.windows import padding_pairs, window_dimensions
from sdy.stablehlo.elementwise import BinaryElementwiseOp
from sdy.stablehlo.emitter import Emitter, before, with_shape

_MOST_STEPS = 64
"""The largest number of elements of a window that are selected one after the other."""


@dataclass(frozen=True)
class FitBlocksPass(ModulePass):
    """Rewrite the operations of the main function whose smallest blocks exceed `block_bytes`.

    A reduction becomes a tree: of parts that fit, of their results, and so on. Before, with blocks of 64 KiB::

        %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : tensor<4x65537xf32>

    After::

        %0 = stablehlo.pad %a, %c, low = [0, 0], high = [0, 3], interior = [0, 0]
        %1 = stablehlo.reshape %0 : (tensor<4x65540xf32>) -> tensor<4x5x13108xf32>
        %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [2]
        %3 = stablehlo.reduce(%2 init: %c) applies stablehlo.add across dimensions = [1]

    A product whose blocks fit is accumulated part by part if that is predicted to take half the time. Any other
    operation that fits stays. Calls are inlined first.
    """

    name = "sdy-fit-blocks"
    block_bytes: int = 2**28

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fit_blocks(op, self.block_bytes)


def fit_blocks(module: ModuleOp, limit: int) -> None:
    """Expand `module`, and rewrite operations until each has blocks of at most `limit` bytes or cannot be rewritten."""
    expand(module)
    for function in module.ops:
        if isinstance(function, FuncOp) and not function.is_declaration:
            _fit(function.body.block, limit)


def _fit(block: Block, limit: int) -> None:
    op = block.first_op
    while op is not None:
        previous, following = op.prev_op, op.next_op
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None and _is_static(op):
            size = smallest_block_bytes(op)
            if size > limit:
                rewrite(op, size, limit)
                if op.parent is not block:  # Fit what replaces it.
                    following = block.first_op if previous is None else previous.next_op
            elif isinstance(op, DotOp | DotGeneralOp):
                accumulate_if_faster(op, limit)
        op = following


def smallest_block_bytes(op: Operation) -> int:
    """Return the bytes of a block of one step, or as few as blocks of `op` can have; all bytes without axes."""
    blocks = block_operation(op)
    if blocks is None or 0 in blocks.index_shape:
        return sum(value_bytes(value) for value in (*operands_of(op), *op.results))
    steps = list(blocks.index_shape)
    for axis in range(len(steps)):
        candidate = [1 if number == axis else size for number, size in enumerate(steps)]
        if can_be_computed(blocks, candidate):
            steps = candidate
    return block_bytes(blocks, steps)


def _is_static(op: Operation) -> bool:
    return all(is_static_tensor(value.type) for value in (*op.operands, *op.results))


def _split_reduction(op: DotOp | DotGeneralOp | ReduceOp, size: int, limit: int) -> None:
    """Reduce in a tree: the operand in parts of half of `limit`, since results and initial values take memory too."""
    blocks = block_operation(op)
    assert blocks is not None
    longest = max((axis.extent for axis in blocks.axes if axis.kind is FactorKind.REDUCTION), default=1)
    parts = min(-(-2 * size // limit), longest // 2)
    if parts > 1:
        split_reduction(op, parts) if isinstance(op, ReduceOp) else split_product(op, parts, limit)


def _reshape_twice(op: ReshapeOp, size: int, limit: int) -> None:
    """Merge all dimensions, then split them: each step has blocks, while 6x4 -> 8x3 has none."""
    if len(shape_of(op.operand)) > 1 < len(shape_of(op.result)):
        emit = before(op)
        flat = emit.reshape(op.operand, [prod(shape_of(op.operand))])
        replace(op, [emit.reshape(flat, shape_of(op.result))])


def _add_iotas(op: IotaOp, size: int, limit: int) -> None:
    """Compute an iota of rows * columns elements as the row's first number plus the iota of the columns."""
    (length,) = shape_of(op.output)
    columns = ceil(sqrt(length))
    rows = -(-length // columns)
    emit = before(op)
    first, column = (emit.insert(IotaOp(0, with_shape(op.output, [count]))) for count in (rows, columns))
    stride = emit.filled(tensor_type(first), columns)
    square = [rows, columns]
    numbers = emit.add(
        emit.broadcast(emit.binary(MulOp, first, stride), [0], square), emit.broadcast(column, [1], square)
    )
    replace(op, [emit.slice(emit.reshape(numbers, [rows * columns]), [0], [length])])


def _select_branch(op: CaseOp | IfOp, size: int, limit: int) -> None:
    """Compute all branches, unless one may not end or has effects, and select the results of the right one."""
    branches = [op.regions[1], op.regions[0]] if isinstance(op, IfOp) else list(op.regions)
    if not all(_always_ends(inner) for region in branches for top in region.block.ops for inner in operations(top)):
        return
    emit = before(op)
    selector = op.operands[0] if isinstance(op, CaseOp) else emit.convert(op.operands[0], i32)
    results: Sequence[SSAValue] = _inlined(branches[-1], op)
    for number, region in reversed([*enumerate(branches[:-1])]):
        is_chosen = emit.compare(ComparisonDirection.EQ, selector, emit.filled(tensor_type(selector), number))
        pairs = zip(_inlined(region, op), results, strict=True)
        results = [emit.select(is_chosen, one, other) for one, other in pairs]
    replace(op, results)


def _select_by_step(op: SelectAndScatterOp, size: int, limit: int) -> None:
    """Select and scatter at one position of all windows after the other: by strided slices, and pads of the sources.

    `select` and `scatter` must be single elementwise operations.
    """
    select, scatter = (_elementwise(region) for region in (op.select, op.scatter))
    sizes = list[int]() if op.window_dimensions is None else op.window_dimensions.get_values()
    window = window_dimensions(sizes, op.window_strides, padding_pairs(op.padding))
    steps = list(product(*(range(each.size or 1) for each in window)))
    if select is None or scatter is None or len(steps) > _MOST_STEPS:
        return
    emit = before(op)
    places, strides = shape_of(op.source), [each.stride for each in window]
    no, zero = emit.filled(TensorType(i1, ()), 0), emit.filled(scalar(tensor_type(op.operand).element_type), 0)
    low, high = zip(*(each.padding for each in window), strict=True)
    inside = emit.insert(PadOp(emit.filled(TensorType(i1, shape_of(op.operand)), 1), no, low, high))
    padded = emit.insert(PadOp(op.operand, zero, low, high))

    def at_step(value: SSAValue, step: Sequence[int]) -> SSAValue:
        ends = [first + stride * (count - 1) + 1 for first, stride, count in zip(step, strides, places, strict=True)]
        return emit.slice(value, step, ends, strides)

    selected, is_found = at_step(padded, steps[0]), at_step(inside, steps[0])
    hits = [is_found]
    for step in steps[1:]:
        candidate = at_step(padded, step)
        stays = emit.binary(AndOp, is_found, emit.insert(select([selected, candidate], is_found.type)))
        is_better = emit.binary(AndOp, _negated(stays, emit), at_step(inside, step))
        selected = emit.select(is_better, candidate, selected)
        hits = [*(emit.binary(AndOp, hit, _negated(is_better, emit)) for hit in hits), is_better]
        is_found = emit.binary(OrOp, is_found, is_better)
    result = emit.broadcast(op.init_value, [], shape_of(op.result))
    for step, hit in zip(steps, hits, strict=True):
        before_it = [first - each.padding[0] for first, each in zip(step, window, strict=True)]
        covered = [stride * (count - 1) + 1 for stride, count in zip(strides, places, strict=True)]
        after = [
            whole - first - part for whole, first, part in zip(shape_of(op.result), before_it, covered, strict=True)
        ]
        between = [stride - 1 for stride in strides]
        update = emit.insert(PadOp(op.source, op.init_value, before_it, after, between))
        is_hit = emit.insert(PadOp(hit, no, before_it, after, between))
        result = emit.select(is_hit, emit.insert(scatter([result, update], result.type)), result)
    replace(op, [result])


def _negated(value: SSAValue, emit: Emitter) -> SSAValue:
    return emit.insert(NotOp.create(operands=[value], result_types=[value.type]))


def _elementwise(region: Region) -> Callable[[Sequence[SSAValue], Attribute], Operation] | None:
    """Return a function that applies the single operation of a region to tensors; None if there are others."""
    inner, *others = region.block.ops
    end = region.block.last_op
    if len(others) != 1 or end is None or list(end.operands) != list(inner.results):
        return None
    if not isinstance(inner, BinaryElementwiseOp | CompareOp) or set(inner.operands) != set(region.block.args):
        return None
    order = [argument.index for argument in inner.operands if isinstance(argument, BlockArgument)]

    def apply(operands: Sequence[SSAValue], type_: Attribute) -> Operation:
        return type(inner).create(
            operands=[operands[index] for index in order], result_types=[type_], properties=inner.properties
        )

    return apply


def _inlined(region: Region, op: Operation) -> Sequence[SSAValue]:
    """Copy the operations of a region before `op`, and return the values that it returns."""
    values: dict[SSAValue, SSAValue] = {}
    *inner, end = region.block.ops
    for each in inner:
        Rewriter.insert_op(each.clone(values), InsertPoint.before(op))
    return [values.get(value, value) for value in end.operands]


def _always_ends(op: Operation) -> bool:
    return is_pure(op) and (not isinstance(op, WhileOp) or loop_trips(op) is not None)


_REWRITES: dict[type[Operation], Callable[[Any, int, int], None]] = {
    CaseOp: _select_branch,
    DotGeneralOp: _split_reduction,
    DotOp: _split_reduction,
    DynamicSliceOp: gather_slice,
    DynamicUpdateSliceOp: scatter_slice,
    GatherOp: split_gather,
    IfOp: _select_branch,
    IotaOp: _add_iotas,
    ReduceOp: _split_reduction,
    ReshapeOp: _reshape_twice,
    ScatterOp: split_scatter,
    SelectAndScatterOp: _select_by_step,
    WhileOp: unroll,
}
"""Functions that rewrite an operation with a smallest block of `size` bytes for blocks of `limit` bytes."""
