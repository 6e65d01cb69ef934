"""Arithmetic operations of an operation, by a table.

Products run at the peak of their element type and precision, sorts at the rate of "sort", other operations at that of
"vector". Elementwise operations are bound by memory and not counted.

    operation               count
    dot, ragged dot         2 m n k; each row is in one group
    convolution             2 for each pair of an output and an element under its window, without holes and padding
    FFT                     5 n log2(n), half of that for real numbers (the convention of FFTW's benchmarks)
    sort                    n log2(n) (log2(n) + 1) / 2, Batcher's bitonic sorting network (1968)
    reduce_window           the size of the window for each result
    triangular solve        n^2 m
    Cholesky, LU            n^3 / 3, 2 n^3 / 3
    QR                      2 n^2 (m - n/3); the same again to form Q
    attention of cuDNN      2 products, 5 in the gradient; half of them under a causal mask
    symmetric eigenvalues   9 n^3 with vectors
    SVD                     14 m n^2 + 8 n^3 with thin factors
    Schur, eigenvalues      25 n^3

The counts of factorizations are those of Golub and Van Loan, "Matrix Computations", 4th edition.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Operation, SSAValue

from sdy.dialect.attributes import OPERATOR
from sdy.ir.fast_access import operands_of
from sdy.ir.shapes import shape_of
from sdy.operators.work import Work
from sdy.passes.spmd.costs.hardware import SORT, VECTOR
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.checks.windows import padding_pairs, window_dimensions
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.elementwise import AndOp
from sdy.stablehlo.linear_algebra import CholeskyOp, FftOp, TriangularSolveOp
from sdy.stablehlo.mixed_elementwise import CompareOp, SelectOp
from sdy.stablehlo.sort import SortOp
from sdy.stablehlo.windows import ReduceWindowOp, SelectAndScatterOp

_COMPLEX = {"complex<f32>": "f32", "complex<f64>": "f64"}
_REAL_PRODUCTS = 4
"""The products of real numbers in a product of complex ones."""


NONE = Work()


def arithmetic_of(op: Operation) -> Work:
    """Return the arithmetic operations of `op` on the shapes that it has."""
    count = _COUNTS.get(type(op))
    return count(op) if count else NONE


def product_sizes(op: Operation, shapes: Sequence[Sequence[int]]) -> tuple[int, int, int] | None:
    """Return the rows, columns and summed elements of a dot product on operands of these `shapes`, or else None."""
    if isinstance(op, DotOp):
        (*rows, summed), (_, *columns) = shapes[:2]
        return math.prod(rows), math.prod(columns), summed
    if not isinstance(op, DotGeneralOp):
        return None
    dims = op.dot_dimension_numbers.data
    lhs, rhs = shapes[:2]
    summed = math.prod([lhs[dim] for dim in dims.lhs_contracting_dimensions])
    paired = {*dims.lhs_batching_dimensions, *dims.lhs_contracting_dimensions}
    paired_rhs = {*dims.rhs_batching_dimensions, *dims.rhs_contracting_dimensions}
    rows = math.prod([size for dim, size in enumerate(lhs) if dim not in paired])
    columns = math.prod([size for dim, size in enumerate(rhs) if dim not in paired_rhs])
    return rows, columns, summed


def _product(op: Any, operations: float) -> Work:
    """Return the arithmetic of a product of the first two operands, at its precision or by its algorithm."""
    algorithm = getattr(op, "algorithm", None)
    if algorithm is not None:
        data = algorithm.data
        element_type, precision = _TYPES.get(str(data.lhs_precision_type), ("", "highest"))
        return Work(operations * data.num_primitive_operations, element_type, precision)
    return _of_type(op.operands[0], operations, _precision(getattr(op, "precision_config", None)))


_TYPES = {
    **{name: (name, "default") for name in ("bf16", "f16", "f8E4M3FN", "f8E5M2")},
    "tf32": ("f32", "default"),
    "f32": ("f32", "highest"),
    "f64": ("f64", "highest"),
}
"""The element type and precision of a dot algorithm, by the type to which it rounds the operands."""


def _of_type(operand: SSAValue, operations: float, precision: str) -> Work:
    name = str(tensor_type(operand).element_type) if isinstance(operand.type, TensorType) else ""
    if name in _COMPLEX:
        return Work(_REAL_PRODUCTS * operations, _COMPLEX[name], precision)
    return Work(operations, name, precision)


def _precision(config: ArrayAttr[Any] | None) -> str:
    """Return the highest precision of the operands, which XLA uses for both."""
    names = [str(each.data) for each in config.data] if config is not None else []
    return max(names, key=("DEFAULT", "HIGH", "HIGHEST").index, default="DEFAULT").lower()


def _dot(op: DotGeneralOp | DotOp) -> Work:
    dims = op.dot_dimension_numbers.data.lhs_contracting_dimensions if isinstance(op, DotGeneralOp) else (-1,)
    summed = math.prod([shape_of(op.lhs)[dim] for dim in dims])
    groups = max(masked_copies(op.lhs), masked_copies(op.rhs))
    return _product(op, 2.0 * math.prod(shape_of(op.result)) * summed / groups)


def masked_copies_of(op: Operation) -> tuple[int, ...]:
    """Return the number of masked copies in each operand, then in each result."""
    return tuple([masked_copies(value) for values in (operands_of(op), op.results) for value in values])


def masked_copies(value: SSAValue) -> int:
    """Return the number of copies in `value` if a mask keeps each element in one copy, or else 1.

    JAX lowers `ragged_dot` to such a product where the platform has no ragged one: each group has a copy of the factor,
    with zeros outside of the group. Kernels of ragged products compute each element once.
    """
    select = value.owner
    if not isinstance(select, SelectOp) or not isinstance(select.on_true.owner, BroadcastInDimOp):
        return 1
    mask, copies = select.pred.owner, select.on_true.owner
    if not isinstance(mask, AndOp) or not all(isinstance(bound.owner, CompareOp) for bound in mask.operands):
        return 1
    kept = copies.broadcast_dimensions.get_values()
    added = [size for dim, size in enumerate(shape_of(value)) if dim not in kept]
    return added[0] if len(added) == 1 else 1


def _ragged_dot(op: RaggedDotOp) -> Work:
    """Count each element along the ragged dimension once: it is in one group."""
    dims = op.ragged_dot_dimension_numbers.data
    used = {*dims.rhs_batching_dimensions, *dims.rhs_contracting_dimensions, *dims.rhs_group_dimensions}
    columns = math.prod([size for dim, size in enumerate(shape_of(op.rhs)) if dim not in used])
    return _product(op, 2.0 * math.prod(shape_of(op.lhs)) * columns)


def _convolution(op: ConvolutionOp) -> Work:
    dims = op.dimension_numbers.data
    lhs, rhs, result = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    kernel = [rhs[dim] for dim in dims.kernel_spatial_dimensions]
    windows = window_dimensions(kernel, op.window_strides, padding_pairs(op.padding), op.lhs_dilation, op.rhs_dilation)
    pairs = 1.0
    for dim, out, window in zip(dims.input_spatial_dimensions, dims.output_spatial_dimensions, windows, strict=True):
        low, step = window.padding[0], window.base_dilation
        starts = np.arange(result[out])[:, None] * window.stride - low
        places = starts + np.arange(window.size or 0)[None, :] * window.window_dilation
        pairs *= int(np.count_nonzero((places >= 0) & (places <= (lhs[dim] - 1) * step) & (places % step == 0)))
    batch, features = result[dims.output_batch_dimension], result[dims.output_feature_dimension]
    return _product(op, 2.0 * batch * features * rhs[dims.kernel_input_feature_dimension] * pairs)


def _fft(op: FftOp) -> Work:
    length = math.prod(op.fft_length.get_values())
    is_real = op.fft_type.data.name in ("RFFT", "IRFFT")
    longest = max(math.prod(shape_of(op.operand)), math.prod(shape_of(op.result)))
    return Work((2.5 if is_real else 5.0) * longest * math.log2(max(length, 2)), VECTOR)


def _sort(op: SortOp) -> Work:
    shape = shape_of(op.inputs[0])
    if not shape:
        return NONE
    steps = math.ceil(math.log2(max(shape[op.dimension.value.data], 1)))
    return Work(len(op.inputs) * math.prod(shape) * steps * (steps + 1) / 2, SORT)


def _reduce_window(op: ReduceWindowOp) -> Work:
    elements = sum(math.prod(shape_of(result)) for result in op.res)
    return Work(float(elements * math.prod(op.window_dimensions.get_values())), VECTOR)


def _select_and_scatter(op: SelectAndScatterOp) -> Work:
    window = math.prod(op.window_dimensions.get_values()) if op.window_dimensions is not None else 1
    return Work(float(math.prod(shape_of(op.source)) * window), VECTOR)


def _triangular_solve(op: TriangularSolveOp) -> Work:
    rows = shape_of(op.a)[-1]
    return _of_type(op.a, float(math.prod(shape_of(op.b)) * rows), "highest")


def _trsm(op: CustomCallOp) -> Work:
    rows = shape_of(op.operands[0])[-1]
    return _of_type(op.operands[0], float(math.prod(shape_of(op.operands[1])) * rows), "highest")


def _cholesky(op: CholeskyOp) -> Work:
    return _of_type(op.a, math.prod(shape_of(op.a)) * shape_of(op.a)[-1] / 3, "highest")


_FACTORIZATIONS: Sequence[tuple[str, Callable[[int, int], float]]] = (
    (r"potrf", lambda m, n: n**3 / 3),
    (r"getrf|LuDecomposition", lambda m, n: 2 * m * n**2 - 2 * n**3 / 3),
    (r"geqp?[r3]f?|Qr$", lambda m, n: 2 * m * n**2 - 2 * n**3 / 3),
    (r"(or|un)gqr|(or|un)mqr|householder_product|ProductOfElementary", lambda m, n: 2 * m * n**2 - 2 * n**3 / 3),
    (r"syev|heev|Eigh", lambda m, n: 9 * n**3),
    (r"gesvd|gesdd|SVD", lambda m, n: 14 * m * n**2 + 8 * n**3),
    (r"gees|geev", lambda m, n: 25 * n**3),
    (r"gehrd|sytrd|hetrd", lambda m, n: 10 * n**3 / 3),
)
"""The operations of a factorization of a matrix of m x n with m >= n, by the target of the custom call: a routine of
LAPACK, cuSOLVER or XLA."""

_TOP_K = re.compile(r"TopK|top_k")


def _operator_call(op: CustomCallOp) -> Work:
    """Return the work that an annotated operator declares, or else that of the operations of its function."""
    from sdy.operators.call import call_of
    from sdy.operators.registry import operator_of

    call = call_of(op)
    operator = operator_of(call) if call else None
    if call is None or operator is None:
        return NONE
    declared = operator.declared_work(call, [shape_of(value) for value in op.operands])
    if declared is not None:
        return declared
    return largest_work([arithmetic_of(inner) for inner in operator.module(call, op.operand_types).walk()])


def largest_work(works: Sequence[Work]) -> Work:
    """Return the sum of `works` of the element type and precision that has the most operations."""
    operations: dict[tuple[str, str], float] = defaultdict(float)
    for work in works:
        operations[work.element_type, work.precision] += work.operations
    (element_type, precision), most = max(operations.items(), key=itemgetter(1), default=(("", "default"), 0.0))
    return Work(most, element_type, precision)


_ATTENTION = "__cudnn$fmha"
"""The beginning of the targets of cuDNN's attention."""


def _attention(op: CustomCallOp) -> Work:
    """Count the products of queries with keys, and of their softmax with values, by the size of the scores."""
    target, config = op.call_target_name.data, str(getattr(op.backend_config, "data", ""))
    scores = re.search(r'"dimensions": *\[([^]]*)\]', config)
    if scores is None:
        return NONE
    size = math.prod(int(each) for each in re.findall(r"\d+", scores[1]))
    products = (5 if "Backward" in target else 2) / (2 if "CAUSAL" in config else 1)
    return _of_type(op.operands[0], 2.0 * products * size * shape_of(op.operands[0])[-1], "default")


def _custom_call(op: CustomCallOp) -> Work:
    if OPERATOR in op.attributes:
        return _operator_call(op)
    target = op.call_target_name.data
    if target.startswith(_ATTENTION):
        return _attention(op)
    if not op.operands or not isinstance(op.operands[0].type, TensorType):
        return NONE
    shape = shape_of(op.operands[0])
    if _TOP_K.search(target):
        return Work(math.prod(shape) * math.log2(max(shape[-1], 2)), VECTOR)
    if "trsm" in target:
        return _trsm(op)
    count = next((count for pattern, count in _FACTORIZATIONS if re.search(pattern, target)), None)
    if count is None or len(shape) < 2:
        return NONE
    *batch, rows, columns = shape
    larger, smaller = max(rows, columns), min(rows, columns)
    return _of_type(op.operands[0], math.prod(batch) * count(larger, smaller), "highest")


_COUNTS: dict[type[Operation], Callable[[Any], Work]] = {
    DotGeneralOp: _dot,
    DotOp: _dot,
    RaggedDotOp: _ragged_dot,
    ConvolutionOp: _convolution,
    FftOp: _fft,
    SortOp: _sort,
    ReduceWindowOp: _reduce_window,
    SelectAndScatterOp: _select_and_scatter,
    TriangularSolveOp: _triangular_solve,
    CholeskyOp: _cholesky,
    CustomCallOp: _custom_call,
}
