"""`sdy-fit-blocks`: rewrite operations whose smallest blocks exceed a size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
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
    CaseOp,
    DotGeneralOp,
    DotOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    IfOp,
    IotaOp,
    MulOp,
    ReduceOp,
    ReshapeOp,
    ScatterOp,
    WhileOp,
)
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.emitter import before, with_shape


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
        previous = op.prev_op
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None and _is_static(op):
            size = smallest_block_bytes(op)
            if size > limit:
                rewrite(op, size, limit)
            elif isinstance(op, DotOp | DotGeneralOp):
                accumulate_if_faster(op, limit)
        is_kept = op.parent is block
        following = block.first_op if previous is None else previous.next_op
        op = op.next_op if is_kept else following


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
    WhileOp: unroll,
}
"""Functions that rewrite an operation with a smallest block of `size` bytes for blocks of `limit` bytes."""
