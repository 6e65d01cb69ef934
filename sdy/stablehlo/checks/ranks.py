"""Unranked tensors, `tensor<*xf32>`, which CHLO allows and StableHLO does not."""

from typing import cast

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import inferred_types_error
from sdy.stablehlo.checks.inference import InferredResults, not_inferred
from sdy.stablehlo.checks.shape_checks import same_shape


def with_element_type(
    type_: Attribute, element_type: Attribute
) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
    """Return a tensor type with its element type replaced."""
    if isinstance(type_, TensorType):
        tensor = cast(TensorType[Attribute], type_)
        return TensorType(element_type, tensor.shape, tensor.encoding)
    return UnrankedTensorType(element_type)


def verify_inferred_shapes(op: InferredResults) -> None:
    """Raise DiagnosticError if the result shapes are incompatible with the inferred ones; element types may differ."""
    try:
        inferred = op.infer_types()
    except VerifyException as problem:
        raise not_inferred(op, str(problem)) from problem
    result_types = op.result_types
    if len(inferred) != len(result_types) or not all(map(same_shape, inferred, result_types)):
        raise inferred_types_error(op, inferred, result_types)
