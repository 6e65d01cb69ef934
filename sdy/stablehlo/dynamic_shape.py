"""Operations on shapes that are known only at run time, when they are operands themselves."""

from xdsl.dialects.builtin import I64, IntegerAttr, TensorType
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from sdy.stablehlo.attributes import I64_ARRAY
from sdy.stablehlo.definition import define
from sdy.stablehlo.syntax import Dims


@define
class DynamicBroadcastInDimOp(IRDLOperation):
    """broadcast_in_dim to a shape that is known only at run time."""

    name = "stablehlo.dynamic_broadcast_in_dim"
    operand = operand_def(TensorType)
    output_dimensions = operand_def(TensorType)
    broadcast_dimensions = prop_def(I64_ARRAY)
    known_expanding_dimensions = opt_prop_def(I64_ARRAY)
    known_nonexpanding_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$operand `,` $output_dimensions `,` `dims` `=` custom<Dims>($broadcast_dimensions) attr-dict"
        " `:` functional-type(operands, results)"
    )
    custom_directives = (Dims,)


@define
class DynamicReshapeOp(IRDLOperation):
    """Reshape to a shape that is known only at run time."""

    name = "stablehlo.dynamic_reshape"
    operand = operand_def(TensorType)
    output_shape = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"


@define
class RealDynamicSliceOp(IRDLOperation):
    """A slice whose starts, limits and strides are known only at run time."""

    name = "stablehlo.real_dynamic_slice"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    limit_indices = operand_def(TensorType)
    strides = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"


@define
class DynamicPadOp(IRDLOperation):
    """Padding whose sizes are known only at run time."""

    name = "stablehlo.dynamic_pad"
    operand = operand_def(TensorType)
    padding_value = operand_def(TensorType)
    edge_padding_low = operand_def(TensorType)
    edge_padding_high = operand_def(TensorType)
    interior_padding = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "operands attr-dict `:` functional-type(operands, results)"


@define
class GetDimensionSizeOp(IRDLOperation):
    """The size of one dimension, as `tensor<i32>`."""

    name = "stablehlo.get_dimension_size"
    operand = operand_def(TensorType)
    dimension = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"


@define
class SetDimensionSizeOp(IRDLOperation):
    """The operand with one dimension shortened at run time."""

    name = "stablehlo.set_dimension_size"
    operand = operand_def(TensorType)
    size = operand_def(TensorType)
    dimension = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$operand `,` $size `,` `dim` `=` $dimension attr-dict `:` functional-type(operands, results)"


@define
class DynamicIotaOp(IRDLOperation):
    """Iota of a shape that is known only at run time."""

    name = "stablehlo.dynamic_iota"
    output_shape = operand_def(TensorType)
    iota_dimension = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$output_shape `,` `dim` `=` $iota_dimension attr-dict `:` functional-type(operands, results)"
