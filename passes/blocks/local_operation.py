"""The program of a shard: a module whose main function is one operation on the shapes of a block."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import SymbolTable

from sdy.blocks import Access, BlockOperation, block_operation, operands_of
from sdy.blocks.regions import independent_axes, region_axes
from sdy.box import Box
from sdy.dialect.attributes import OPERATOR
from sdy.ir.editing import change_type
from sdy.ir.elements import splat
from sdy.ir.shapes import shape, shape_of
from sdy.ir.walking import captured_values, operations
from sdy.operators.call import OperatorCall, call_of
from sdy.operators.registry import operator_of
from sdy.passes.spmd.ops.constants import splat_of_type
from sdy.stablehlo import (
    ConstantOp,
    ConvolutionOp,
    CustomCallOp,
    DynamicSliceOp,
    GatherOp,
    PadOp,
    ReduceWindowOp,
    SliceOp,
    WhileOp,
)
from sdy.stablehlo.attributes.operation_attributes import i64_array
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.control_flow import Conditional
from sdy.stablehlo.emitter import with_shape

Properties = Mapping[str, Attribute]


def whole_program(op: Operation) -> ModuleOp:
    """Return the program of the unpartitioned `op`; its arguments are the operands, then the captured values.

    The results are those that have elements.
    """
    types = [value.type for value in operands_of(op)]
    return _program(op, types, [result.type for result in op.results], op.properties, _attributes(op), {})


def local_program(op: Operation, blocks: BlockOperation, index: Box) -> ModuleOp:
    """Return the program of `op` on the block `index` of its index space; its arguments are the operands' regions."""
    touched = [tuple(access.touched(index).tolist()) for access in blocks.accesses]
    values = [*operands_of(op), *op.results]
    types = [with_shape(value, shape) for value, shape in zip(values, touched, strict=True)]
    count = len(blocks.operands)
    properties, attributes = _of_block(op, blocks, index)
    return _program(op, types[:count], types[count:], properties, attributes, _narrowed(op, index))


def _of_block(op: Operation, blocks: BlockOperation, index: Box) -> tuple[Properties, Properties]:
    """Return the properties and attributes of `op` on a block."""
    adjust = _ADJUSTED.get(type(op))
    attributes = _attributes(op)
    if (call := call_of(op)) is not None:
        attributes[OPERATOR] = StringAttr(str(call.with_sizes(_operator_sizes(op, call, index))))
    return {**op.properties, **(adjust(op, blocks, index) if adjust else {})}, attributes


def _program(
    op: Operation,
    types: Sequence[Attribute],
    result_types: Sequence[Attribute],
    properties: Properties,
    attributes: Properties,
    narrowed: Mapping[SSAValue, Attribute],
) -> ModuleOp:
    block = Block(arg_types=types)
    arguments: dict[SSAValue, SSAValue] = dict(zip(operands_of(op), block.args, strict=True))
    # XLA does not support captured values in the body of a sort or a reduction, except constants.
    for value in captured_values(op):
        if isinstance(value.owner, ConstantOp):
            block.add_op(constant := value.owner.clone())
            arguments[value] = constant.output
            if value in narrowed:
                _narrow(value.owner, constant, narrowed)
    local = type(op).create(
        operands=block.args[: len(op.operands)],  # an operation may read different regions of one value
        result_types=result_types,
        properties=dict(properties),
        attributes=dict(attributes),
        regions=[_cloned(region, arguments) for region in op.regions],
        location=op.location,
    )
    if narrowed:
        for inner, copy in zip(operations(op), operations(local), strict=True):
            _narrow(inner, copy, narrowed)
    results = [result for result in local.results if 0 not in shape_of(result)]
    block.add_ops([local, ReturnOp(*results)])
    function = FuncOp("main", (types, [result.type for result in results]), Region(block))
    return ModuleOp([function, *called_functions([op])])


def called_functions(ops: Iterable[Operation]) -> list[FuncOp]:
    """Return copies of the functions that custom calls in `ops` refer to, such as comparators, each once."""
    functions = dict.fromkeys(
        SymbolTable.lookup_symbol(call, name)
        for op in ops
        for call in operations(op)
        if isinstance(call, CustomCallOp)
        for name in call.called_computations.data
        if isinstance(name, SymbolRefAttr)
    )
    return [function.clone() for function in functions if isinstance(function, FuncOp)]


def _narrowed(op: Operation, index: Box) -> Mapping[SSAValue, Attribute]:
    """Return the types of the values in the regions of `op` on a block that are not those of the whole operation."""
    if not isinstance(op, Conditional | WhileOp):
        return {}
    steps = index.shape.tolist()
    narrowed: dict[SSAValue, Attribute] = {}
    for value, axes in region_axes(op).of_value.items():
        sizes = [steps[axes[dim]] if dim in axes else size for dim, size in enumerate(shape_of(value))]
        narrowed[value] = with_shape(value, sizes)
    return narrowed


def _narrow(op: Operation, copy: Operation, narrowed: Mapping[SSAValue, Attribute]) -> None:
    """Change the types and properties of `copy`, a clone of `op` in a region, to those of a block."""
    regions = zip(op.regions, copy.regions, strict=True)
    pairs: list[tuple[SSAValue, SSAValue]] = [*zip(op.results, copy.results, strict=True)]
    pairs += [pair for one, other in regions for pair in zip(one.block.args, other.block.args, strict=True)]
    for value, local in pairs:
        if value in narrowed:
            change_type(local, narrowed[value])
    if isinstance(copy, ConstantOp) and (element := splat(copy.value)) is not None:
        copy.properties["value"] = splat_of_type(element, tensor_type(copy.output))
    blocks = None if op.regions else block_operation(op)
    if blocks is not None:
        values = [*op.operands, *op.results]
        steps = list(blocks.index_shape)
        for axis, dims in independent_axes(blocks):
            tensor, dim = next(iter(dims.items()))
            steps[axis] = shape(narrowed.get(values[tensor], values[tensor].type))[dim]
        properties, attributes = _of_block(op, blocks, Box.of_shape(steps))
        if isinstance(op, SliceOp):  # its operand is cut along other dimensions only
            sizes = shape(copy.operands[0].type)
            limits = [min(limit, size) for limit, size in zip(op.limit_indices.get_values(), sizes, strict=True)]
            properties = {**op.properties, "limit_indices": i64_array(*limits)}
        copy.properties.update(properties)
        copy.attributes.update(attributes)


def _attributes(op: Operation) -> dict[str, Attribute]:
    """Return the attributes of the program of a shard: without shardings, which concern the whole operation."""
    return {name: value for name, value in op.attributes.items() if not name.startswith("sdy.") or name == OPERATOR}


def _operator_sizes(op: Operation, call: OperatorCall, index: Box) -> Mapping[str, int]:
    """Return the size of each identifier of an operator's annotation in a block, one axis per factor of its rule."""
    operator = operator_of(call)
    if operator is None:
        return {}
    rule = operator.rule(call, list(map(shape_of, op.operands)), list(map(shape_of, op.results)))
    sizes, steps = rule.rule.factor_sizes, index.shape.tolist()
    return {name: min(steps[factor], sizes[factor]) for name, factor in rule.factors.items()}


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


def _dynamic_slice(op: DynamicSliceOp, blocks: BlockOperation, index: Box) -> Properties:
    return {"slice_sizes": i64_array(*blocks.results[0].touched(index).tolist())}


def _gather(op: GatherOp, blocks: BlockOperation, index: Box) -> Properties:
    """Return the slice sizes of a block: the extent of its operand along dimensions that are read in full."""
    touched = blocks.operands[0].touched(index).tolist()
    whole = zip(op.slice_sizes.get_values(), blocks.operands[0].shape, touched, strict=True)
    return {"slice_sizes": i64_array(*(part if size == full else size for size, full, part in whole))}


def _slice(op: SliceOp, blocks: BlockOperation, index: Box) -> Properties:
    """Return the limits of a block, which starts at the first element that it accesses."""
    touched = blocks.operands[0].touched(index).tolist()
    return {"start_indices": i64_array(*[0] * len(touched)), "limit_indices": i64_array(*touched)}


def _pad(op: PadOp, blocks: BlockOperation, index: Box) -> Properties:
    access = blocks.operands[0]
    low, high = zip(*(_padding(access, index, dim) for dim in range(len(access.shape))), strict=True)
    return {"edge_padding_low": i64_array(*low), "edge_padding_high": i64_array(*high)}


_ADJUSTED: dict[type[Operation], Callable[[Any, BlockOperation, Box], Properties]] = {
    ConvolutionOp: _convolution,
    DynamicSliceOp: _dynamic_slice,
    GatherOp: _gather,
    PadOp: _pad,
    ReduceWindowOp: _reduce_window,
    SliceOp: _slice,
}
"""Functions that adapt properties with sizes of the full operation to a block."""
