"""The program of a shard: a module whose main function is one operation on the shapes of a block."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sdy.blocks import Access, BlockOperation
from sdy.box import Box
from sdy.ir.walking import captured_values
from sdy.stablehlo import ConstantOp, ConvolutionOp, GatherOp, PadOp, ReduceWindowOp
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type

Properties = Mapping[str, Attribute]


def captured_variables(op: Operation) -> list[SSAValue]:
    """Return the values, except constants, that the regions of `op` capture, each once."""
    return [value for value in captured_values(op) if not isinstance(value.owner, ConstantOp)]


def whole_program(op: Operation) -> ModuleOp:
    """Return the program of the unpartitioned `op`; its arguments are the operands, then the captured values."""
    values = [*op.operands, *captured_variables(op)]
    return _program(op, values, [value.type for value in values], op.result_types, op.properties)


def local_program(op: Operation, blocks: BlockOperation, index: Box) -> ModuleOp:
    """Return the program of `op` on the block `index` of its index space; its arguments are the operands' regions."""
    touched = [tuple(access.touched(index).tolist()) for access in blocks.accesses]
    types = [
        TensorType(tensor_type(value).element_type, shape)
        for value, shape in zip((*op.operands, *op.results), touched, strict=True)
    ]
    count = len(op.operands)
    adjust = _ADJUSTED.get(type(op))
    properties = {**op.properties, **(adjust(op, blocks, index) if adjust else {})}
    return _program(op, op.operands, types[:count], types[count:], properties)


def _program(
    op: Operation,
    values: Sequence[SSAValue],
    types: Sequence[Attribute],
    result_types: Sequence[Attribute],
    properties: Properties,
) -> ModuleOp:
    block = Block(arg_types=types)
    arguments: dict[SSAValue, SSAValue] = dict(zip(values, block.args, strict=True))
    # XLA does not support captured values in the body of a sort or a reduction, except constants.
    for value in captured_values(op):
        if isinstance(value.owner, ConstantOp):
            block.add_op(constant := value.owner.clone())
            arguments[value] = constant.output
    local = type(op).create(
        operands=[arguments[operand] for operand in op.operands],
        result_types=result_types,
        properties=dict(properties),
        attributes={name: value for name, value in op.attributes.items() if not name.startswith("sdy.")},
        regions=[_cloned(region, arguments) for region in op.regions],
        location=op.location,
    )
    block.add_ops([local, ReturnOp(*local.results)])
    return ModuleOp([FuncOp("main", (types, result_types), Region(block))])


def _cloned(region: Region, values: Mapping[SSAValue, SSAValue]) -> Region:
    copy = Region()
    region.clone_into(copy, 0, dict(values))
    return copy


def _padding(access: Access, index: Box, dim: int) -> tuple[int, int]:
    """Return the low and high padding of a block along `dim`: positions beyond the elements that it accesses."""
    seen, image = access.projection.image(index), access.image(index)
    first, last = max(image.start[dim], 0), min(image.end[dim], access.shape[dim]) - 1
    spacing = access.spacing[dim]
    if last < first:
        return int(seen.end[dim] - seen.start[dim]), 0
    return int(first * spacing - seen.start[dim]), int(seen.end[dim] - last * spacing - 1)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Attribute:
    return DenseIntOrFPElementsAttr.from_list(
        TensorType(i64, (len(pairs), 2)), [size for pair in pairs for size in pair]
    )


def _reduce_window(op: ReduceWindowOp, blocks: BlockOperation, index: Box) -> Properties:
    access = blocks.operands[0]
    return {"padding": _pairs([_padding(access, index, dim) for dim in range(len(access.shape))])}


def _convolution(op: ConvolutionOp, blocks: BlockOperation, index: Box) -> Properties:
    """Return the properties of a block: its number of groups, and the padding of its spatial dimensions."""
    dims = op.dimension_numbers.data
    lhs, rhs = blocks.operands
    batch = index.shape[lhs.axes_of(dims.input_batch_dimension)[0]] if op.batch_group_count.value.data > 1 else 1
    feature_axes = rhs.axes_of(dims.kernel_output_feature_dimension)
    features = index.shape[feature_axes[0]] if op.feature_group_count.value.data > 1 else 1
    return {
        "padding": _pairs([_padding(lhs, index, dim) for dim in dims.input_spatial_dimensions]),
        "batch_group_count": IntegerAttr(int(batch), i64),
        "feature_group_count": IntegerAttr(int(features), i64),
    }


def _gather(op: GatherOp, blocks: BlockOperation, index: Box) -> Properties:
    """Return the slice sizes of a block: the extent of its operand along dimensions that are read in full."""
    touched = blocks.operands[0].touched(index).tolist()
    whole = zip(op.slice_sizes.get_values(), blocks.operands[0].shape, touched, strict=True)
    return {"slice_sizes": i64_array(*(part if size == full else size for size, full, part in whole))}


def _pad(op: PadOp, blocks: BlockOperation, index: Box) -> Properties:
    access = blocks.operands[0]
    low, high = zip(*(_padding(access, index, dim) for dim in range(len(access.shape))), strict=True)
    return {"edge_padding_low": i64_array(*low), "edge_padding_high": i64_array(*high)}


_ADJUSTED: dict[type[Operation], Callable[[Any, BlockOperation, Box], Properties]] = {
    ConvolutionOp: _convolution,
    GatherOp: _gather,
    PadOp: _pad,
    ReduceWindowOp: _reduce_window,
}
"""Functions that adapt properties with sizes of the full operation to a block."""
