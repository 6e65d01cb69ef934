"""Expansion of batch normalization into reductions and elementwise operations."""

import math
from typing import Any

from xdsl.dialects.builtin import AnyFloat, f32
from xdsl.ir import SSAValue

from sdy.stablehlo.batch_norm import BatchNormGradOp, BatchNormOp, BatchNormTrainingOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.elementwise import AddOp, DivOp, MulOp, SqrtOp, SubtractOp
from sdy.stablehlo.emitter import Emitter, before


class _Features:
    """Builder of the expansion, which computes in at least 32 bits."""

    def __init__(self, op: BatchNormOp):
        self._op = op
        self._emit: Emitter = before(op)
        self._shape = tensor_type(op.operands[0]).get_shape()
        self._dim = op.feature_index.value.data
        self._batch = [dim for dim in range(len(self._shape)) if dim != self._dim]

    def wide(self, value: SSAValue) -> SSAValue:
        """Convert `value` to at least 32 bits."""
        element_type = tensor_type(value).element_type
        is_narrow = isinstance(element_type, AnyFloat) and element_type.bitwidth < f32.bitwidth
        return self._emit.convert(value, f32) if is_narrow else value

    def results(self, *values: SSAValue) -> list[SSAValue]:
        """Convert `values` to the element types of the operation's results."""
        element_types = [tensor_type(result).element_type for result in self._op.results]
        return [
            value if tensor_type(value).element_type == type_ else self._emit.convert(value, type_)
            for value, type_ in zip(values, element_types, strict=True)
        ]

    def sum(self, value: SSAValue) -> SSAValue:
        """Sum over all dimensions but the feature's."""
        return self._emit.reduce(value, self._batch, AddOp, 0)

    def mean(self, value: SSAValue) -> SSAValue:
        """Average over all dimensions but the feature's."""
        return self.over_count(self.sum(value))

    def over_count(self, sums: SSAValue) -> SSAValue:
        """Divide sums by the number of elements per feature."""
        count = self._emit.filled(tensor_type(sums), math.prod(self._shape[dim] for dim in self._batch))
        return self.binary(DivOp, sums, count)

    def deviation(self, variance: SSAValue) -> SSAValue:
        """Return sqrt(variance + epsilon)."""
        epsilon = self._emit.filled(tensor_type(variance), self._op.epsilon.value.data)
        total = self._emit.add(variance, epsilon)
        return self._emit.insert(SqrtOp.create(operands=[total], result_types=[total.type]))

    def each(self, summary: SSAValue) -> SSAValue:
        """Broadcast one element per feature to the full shape."""
        return self._emit.broadcast(summary, [self._dim], self._shape)

    def binary(self, op_class: type[Any], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Insert a binary elementwise operation on two values of the same type."""
        return self._emit.binary(op_class, lhs, rhs)


def expand_training(op: BatchNormTrainingOp) -> list[SSAValue]:
    """Insert the expansion of `op` before it; return the normalized tensor, the means and the variances."""
    features = _Features(op)
    x, scale, offset = map(features.wide, op.operands)
    mean = features.mean(x)
    centered = features.binary(SubtractOp, x, features.each(mean))
    variance = features.mean(features.binary(MulOp, centered, centered))
    factor = features.binary(DivOp, scale, features.deviation(variance))
    scaled = features.binary(MulOp, centered, features.each(factor))
    return features.results(features.binary(AddOp, scaled, features.each(offset)), mean, variance)


def expand_gradient(op: BatchNormGradOp) -> list[SSAValue]:
    """Insert the expansion of `op` before it; return the gradients of the tensor, the scale and the offset."""
    features = _Features(op)
    x, scale, mean, variance, gradient = map(features.wide, op.operands)
    deviation = features.deviation(variance)
    centered = features.binary(SubtractOp, x, features.each(mean))
    offset_gradient = features.sum(gradient)
    scale_gradient = features.binary(DivOp, features.sum(features.binary(MulOp, gradient, centered)), deviation)
    slope = features.each(features.over_count(features.binary(DivOp, scale_gradient, deviation)))
    rest = features.binary(SubtractOp, gradient, features.each(features.over_count(offset_gradient)))
    rest = features.binary(SubtractOp, rest, features.binary(MulOp, centered, slope))
    x_gradient = features.binary(MulOp, features.each(features.binary(DivOp, scale, deviation)), rest)
    return features.results(x_gradient, scale_gradient, offset_gradient)
