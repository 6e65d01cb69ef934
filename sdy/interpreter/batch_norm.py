"""Batch normalization: each feature is normalized over all other dimensions."""

from typing import cast

import numpy as np
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation

from sdy import stablehlo
from sdy.interpreter.tables import numeric
from sdy.interpreter.values import Array, of_type, widened
from sdy.stablehlo.batch_norm import BatchNormOp


class _Features:
    """Moves the feature dimension of a batch normalization to the end and back."""

    def __init__(self, op: BatchNormOp):
        self._dim = op.feature_index.value.data
        self.epsilon = float(op.epsilon.value.data)

    def last(self, array: Array) -> Array:
        return np.moveaxis(array, self._dim, -1)

    def back(self, array: Array) -> Array:
        return np.moveaxis(array, -1, self._dim)


def _over_batch(array: Array) -> tuple[int, ...]:
    return tuple(range(array.ndim - 1))


def _results(op: Operation, *arrays: Array) -> PythonValues:
    return tuple(of_type(array, result) for array, result in zip(arrays, op.results, strict=True))


def _training(interpreter: Interpreter, op: stablehlo.BatchNormTrainingOp, args: PythonValues) -> PythonValues:
    features = _Features(op)
    x, scale, offset = map(widened, args)
    x = features.last(x)
    mean, variance = np.mean(x, _over_batch(x)), np.var(x, _over_batch(x))
    result = scale * (x - mean) / np.sqrt(variance + features.epsilon) + offset
    return _results(op, features.back(result), cast(Array, mean), cast(Array, variance))


def _inference(interpreter: Interpreter, op: stablehlo.BatchNormInferenceOp, args: PythonValues) -> PythonValues:
    features = _Features(op)
    x, scale, offset, mean, variance = map(widened, args)
    result = scale * (features.last(x) - mean) / np.sqrt(variance + features.epsilon) + offset
    return _results(op, features.back(result))


def _gradient(interpreter: Interpreter, op: stablehlo.BatchNormGradOp, args: PythonValues) -> PythonValues:
    features = _Features(op)
    x, scale, mean, variance, gradient = map(widened, args)
    x, gradient = features.last(x), features.last(gradient)
    batch, deviation = _over_batch(x), np.sqrt(variance + features.epsilon)
    centered = x - mean
    grad_offset = np.sum(gradient, batch)
    grad_scale = np.sum(gradient * centered / deviation, batch)
    count = x.size // max(x.shape[-1], 1)
    grad_x = scale / deviation * (gradient - grad_offset / count - centered / deviation * grad_scale / count)
    return _results(op, features.back(grad_x), grad_scale, grad_offset)


BATCH_NORM = numeric(
    {
        stablehlo.BatchNormGradOp: _gradient,
        stablehlo.BatchNormInferenceOp: _inference,
        stablehlo.BatchNormTrainingOp: _training,
    }
)
