"""Batch normalization: training, inference and gradient."""

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

from xdsl.dialects.builtin import Float32Type, FloatAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.ir.constraints import NON_NEGATIVE_I64
from sdy.stablehlo.checks.agreement import verify_compatible_elements
from sdy.stablehlo.checks.inference import InferredResults, verify_inferred
from sdy.stablehlo.checks.shape_checks import compatible_shapes, tensor_type
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.syntax.names import DefinedResultNames
from sdy.stablehlo.types.element_types import ROUNDABLE
from sdy.stablehlo.types.sizes import bounded_type, bounds_of
from sdy.stablehlo.types.tensor_types import ranked, vector

BATCH = ranked(ROUNDABLE)
PER_FEATURE = vector(ROUNDABLE)


class BatchNormOp(InferredResults):
    """Base of the batch normalizations; all results but the first have one element per feature."""

    BATCHES: ClassVar[tuple[str, ...]]
    """The operands with the full shape."""

    SUMMARIES: ClassVar[tuple[str, ...]]
    """The operands with one element per feature."""

    epsilon = prop_def(FloatAttr[Float32Type])
    feature_index = prop_def(NON_NEGATIVE_I64)

    def verify_(self) -> None:
        """Verify that element types and shapes of operands and results are compatible."""
        verify_compatible_elements(self)
        verify_inferred(self)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type of the first operand, then that of one element per feature for each further result."""
        batches, summaries = self._operand_types(self.BATCHES), self._operand_types(self.SUMMARIES)
        for kind, types in (("multi", batches), ("single", summaries)):
            if not all(compatible_shapes(a.get_shape(), b.get_shape()) for a, b in combinations(types, 2)):
                raise VerifyException(f"expects {kind}-dimensional operands to have compatible shapes.")
        batch, feature = batches[0], self.feature_index.value.data
        if feature >= batch.get_num_dims():
            raise VerifyException(
                "expects featureIndex to be smaller than the rank of multi-dimensional operands; got featureIndex "
                f"{feature}, and rank {batch.get_num_dims()}."
            )
        count, (size,) = batch.get_shape()[feature], summaries[0].get_shape()
        if not compatible_shapes((count,), (size,)):
            raise VerifyException(
                "expects the size of single-dimensional operands to be compatible with feature count, but the size of "
                f"single-dimensional operands is {size} and the feature count is {count}."
            )
        summary = bounded_type(batch.element_type, (count,), bounds_of(batch)[feature : feature + 1])
        return (batch, *(summary for _ in self.results[1:]))

    def _operand_types(self, names: Sequence[str]) -> list[TensorType[Attribute]]:
        return [tensor_type(getattr(self, name)) for name in names]


@define
class BatchNormTrainingOp(BatchNormOp):
    """Normalize the operand over all dimensions but the feature's; also return the mean and variance per feature."""

    name = "stablehlo.batch_norm_training"
    BATCHES: ClassVar[tuple[str, ...]] = ("operand",)
    SUMMARIES: ClassVar[tuple[str, ...]] = ("scale", "offset")
    operand = operand_def(BATCH)
    scale = operand_def(PER_FEATURE)
    offset = operand_def(PER_FEATURE)
    output = result_def(BATCH)
    batch_mean = result_def(PER_FEATURE)
    batch_var = result_def(PER_FEATURE)
    traits = traits_def(Pure(), DefinedResultNames())


@define
class BatchNormInferenceOp(BatchNormOp):
    """Normalize the operand with the specified mean and variance per feature."""

    name = "stablehlo.batch_norm_inference"
    BATCHES: ClassVar[tuple[str, ...]] = ("operand",)
    SUMMARIES: ClassVar[tuple[str, ...]] = ("scale", "offset", "mean", "variance")
    operand = operand_def(BATCH)
    scale = operand_def(PER_FEATURE)
    offset = operand_def(PER_FEATURE)
    mean = operand_def(PER_FEATURE)
    variance = operand_def(PER_FEATURE)
    result = result_def(BATCH)
    traits = traits_def(Pure())


@define
class BatchNormGradOp(BatchNormOp):
    """Compute the gradients of batch_norm_training."""

    name = "stablehlo.batch_norm_grad"
    BATCHES: ClassVar[tuple[str, ...]] = ("operand", "grad_output")
    SUMMARIES: ClassVar[tuple[str, ...]] = ("scale", "mean", "variance")
    operand = operand_def(BATCH)
    scale = operand_def(PER_FEATURE)
    mean = operand_def(PER_FEATURE)
    variance = operand_def(PER_FEATURE)
    grad_output = operand_def(BATCH)
    grad_operand = result_def(BATCH)
    grad_scale = result_def(PER_FEATURE)
    grad_offset = result_def(PER_FEATURE)
    traits = traits_def(Pure(), DefinedResultNames())
