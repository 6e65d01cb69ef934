"""Verification of reducers: the regions of reductions, which combine two values into one.

    ^bb0(%a: tensor<f32>, %b: tensor<f32>):             one pair of parameters and one result per input; with two
      %0 = stablehlo.add %a, %b : tensor<f32>           inputs the parameters are (a0, a1, b0, b1)
      stablehlo.return %0 : tensor<f32>

The element types of the operation's results are those of the region's, which may be wider than the inputs'.
"""

from collections.abc import Sequence
from functools import cache
from typing import cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.checks.agreement import bit_width
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.types.quantized import UniformQuantizedType

Tensor = TensorType[Attribute]

_PROMOTED: tuple[type[Attribute], ...] = (IntegerType, ComplexType, UniformQuantizedType)


@cache
def scalar(element_type: Attribute) -> Tensor:
    """Return the interned rank-0 tensor type of an element type."""
    return TensorType(element_type, ())


def inputs_and_init_values(operands: Sequence[SSAValue]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the types of the inputs and of the init values; the last of an odd number of operands is ignored."""
    types = [tensor_type(operand) for operand in operands]
    count = len(types) // 2
    return types[:count], types[count : 2 * count]


def verify_compatible_inputs(inputs: Sequence[Tensor]) -> None:
    """Raise VerifyException without inputs, or if their shapes are incompatible."""
    if not inputs:
        raise VerifyException("requires at least 1 input value")
    for number, input_ in enumerate(inputs):
        if not compatible_shapes(input_.get_shape(), inputs[0].get_shape()):
            raise VerifyException(
                f"expects all inputs to have compatible shapes. Shape at input-index {number} is not compatible with "
                "shape at input-index 0"
            )


def verify_reducer(
    body: Region, inputs: Sequence[Tensor], init_values: Sequence[Tensor], dimensions: Sequence[int] = ()
) -> None:
    """Verify that a region combines values of the types of the inputs and init values.

    Args:
        body: The region.
        inputs: The types of the inputs.
        init_values: The types of the init values.
        dimensions: The sizes of the dimensions along which the region's parameters may be slices; by default they are
            scalars.

    Raises:
        VerifyException: If the region is invalid.
    """
    parameters = body.block.arg_types
    count = len(inputs)
    if len(parameters) != 2 * count:
        raise VerifyException(
            f"Reduction-region must take {2 * count} parameters, but takes {len(parameters)} parameter(s)"
        )
    results = _reduced_tensors(body.block, count)
    for number, (input_, init_value, result) in enumerate(zip(inputs, init_values, results, strict=True)):
        _verify_parameter(number, parameters[number], result)
        second = _verify_parameter(number + count, parameters[number + count], result, any_precision=True)
        if not compatible_shapes(init_value.get_shape(), result.get_shape()):
            raise VerifyException(
                f"The shape of reduction-region's result type at index {number} differs from the op's corresponding "
                f"init-value type: '{result}' vs '{init_value}'"
            )
        if not _promotable(init_value.element_type, result.element_type):
            raise VerifyException(
                f"The element-type of reduction-region's result type at index {number} is expected to be promotable "
                f"from the op's corresponding init-value element-type: '{result}' vs '{init_value}'"
            )
        if not _promotable(input_.element_type, second.element_type):
            raise VerifyException(
                f"The element-type of reduction-region's argument at index {number + count} is expected to be "
                f"promotable from '{input_.element_type}', but got '{second.element_type}'"
            )
        if second.get_num_dims() > len(dimensions):
            raise VerifyException(
                f"The rank of reduction-region's argument at index {number + count} is expected to be "
                f"<= {len(dimensions)}, got {second.get_num_dims()}"
            )
        if not _is_slice(second.get_shape(), dimensions):
            raise VerifyException(
                f"The shape of reduction-region's argument at index {number + count} is not compatible with that of "
                f"reduce-op's input-parameter at index {number}"
            )


def reducer_element_types(body: Region) -> list[Attribute]:
    """Return the element types of a verified region's results."""
    terminator = body.block.last_op
    assert terminator is not None
    return [cast(Tensor, type_).element_type for type_ in terminator.operand_types]


def _reduced_tensors(block: Block, count: int) -> list[Tensor]:
    terminator = block.last_op
    if terminator is None or not terminator.has_trait(IsTerminator):
        raise VerifyException("The reduction-region expected to have a terminator")
    if not terminator.operands:
        raise VerifyException("The reduction-region expected to return some value(s)")
    if len(terminator.operands) != count:
        raise VerifyException(
            f"Reduction-region here must produce {count} tensors, but produces {len(terminator.operands)} instead"
        )
    for type_ in terminator.operand_types:
        if not isinstance(type_, TensorType):
            raise VerifyException(
                f"Reduction-region here must produce tensor-typed result(s), but produces '{type_}' instead"
            )
    return cast(list[Tensor], list(terminator.operand_types))


def _verify_parameter(number: int, parameter: Attribute, result: Tensor, *, any_precision: bool = False) -> Tensor:
    tensor = cast(Tensor, parameter) if isinstance(parameter, TensorType) else None
    if tensor is not None and compatible_shapes(result.get_shape(), tensor.get_shape()):
        first, second = result.element_type, tensor.element_type
        if first == second or (any_precision and isinstance(first, AnyFloat) and isinstance(second, AnyFloat)):
            return tensor
    raise VerifyException(
        f"The type of reduction-region's parameter at index {number} is different than the corresponding result type: "
        f"'{parameter}' vs '{result}'"
    )


def _is_slice(shape: Sequence[int], dimensions: Sequence[int]) -> bool:
    """Return whether a shape is a subsequence of the dimensions' sizes."""
    remaining = iter(dimensions)
    return all(any(compatible_shapes((size,), (other,)) for other in remaining) for size in shape)


def _promotable(element_type: Attribute, other: Attribute) -> bool:
    """Return whether an element type can be promoted to another: of the same kind and not wider; floats always can."""
    if isinstance(element_type, AnyFloat) and isinstance(other, AnyFloat):
        return True
    expressed = [type_.data.expressed for type_ in (element_type, other) if isinstance(type_, UniformQuantizedType)]
    return (
        any(isinstance(element_type, kind) and isinstance(other, kind) for kind in _PROMOTED)
        and expressed[:1] == expressed[1:]
        and bit_width(element_type) <= bit_width(other)
    )
