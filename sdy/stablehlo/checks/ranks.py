"""Tensors that may be without a rank, `tensor<*xf32>`, which CHLO has and StableHLO has not."""

from typing import cast

from xdsl.dialects.builtin import TensorType, UnrankedTensorType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import inferred_types_error
from sdy.stablehlo.checks.inference import InferredResults, not_inferred
from sdy.stablehlo.checks.shape_checks import same_shape


def with_elements(type_: Attribute, element_type: Attribute) -> TensorType[Attribute] | UnrankedTensorType[Attribute]:
    """The type of a tensor that differs in its elements alone."""
    if isinstance(type_, TensorType):
        tensor = cast(TensorType[Attribute], type_)
        return TensorType(element_type, tensor.shape, tensor.encoding)
    return UnrankedTensorType(element_type)


def verify_inferred_shapes(op: InferredResults) -> None:
    """Refuse results of other shapes than the inferred types have; their elements may differ."""
    try:
        inferred = op.infer_types()
    except VerifyException as problem:
        raise not_inferred(op, str(problem)) from problem
    found = op.result_types
    if len(inferred) != len(found) or not all(map(same_shape, inferred, found)):
        raise inferred_types_error(op, inferred, found)
