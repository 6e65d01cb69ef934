"""Custom calls: the targets that JAX and XLA use, which are pointwise, in any parts, or have a rule of their own.

The last are the functions of `jax.lax.linalg` and `jax.lax` named at each.
"""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, REDUCTION, RuleBuilder
from sdy.rules.call_targets import register_custom_call
from sdy.rules.elementwise import pointwise

if TYPE_CHECKING:
    from sdy.stablehlo.custom_call import CustomCallOp

_POINTWISE = """
    annotate_device_placement Cholesky CompactWyHelper InspectSharding InvertDiagBlocksLowerTriangular
    InvertDiagBlocksUpperTriangular LayoutConstraint mhlo.erf MoveToDevice MoveToHost X64SplitHigh X64SplitLow
    xla.megascale.provide_metadata
    _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate _SPMDInternalOp_MultiSlice _SPMDInternalOp_RotateRight
    _SPMDInternalOp_Wrap
"""

_IN_ANY_PARTS = "xla_ffi_partitioned_python_cpu_callback xla_ffi_partitioned_python_gpu_callback"

register_custom_call(*_POINTWISE.split())(pointwise)


@register_custom_call(*_IN_ANY_PARTS.split())
def in_any_parts(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Each device calls with the parts that it has, however each operand is split."""
    for number, operand in enumerate(op.operands):
        for dim, size in enumerate(shape_of(operand)):
            rule.add(size, {number: dim}, {}, REDUCTION)


@register_custom_call("Eigh", signature="matrices -> matrices, vectors")
def eigh(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """`jax.lax.linalg.eigh`: matrices -> eigenvectors, eigenvalues."""
    shape = shape_of(op.operands[0])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows})
    rule.add(shape[columns], {0: columns}, {0: columns, 1: rows})


@register_custom_call("Qr", "QrDecompositionBlock", signature="matrices -> matrices, vectors")
def qr(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """`jax.lax.linalg.qr`: matrices -> packed matrices, reflectors' scales. Only the batches can be split."""
    shape, scales = shape_of(op.operands[0]), shape_of(op.results[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {}, {1: rows}, NEED_REPLICATION)


@register_custom_call("ProductOfElementaryHouseholderReflectors", signature="matrices, vectors -> matrices")
def householder_product(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """`jax.lax.linalg.householder_product`: matrices, scales -> matrices. Only the batches can be split."""
    shape, scales = shape_of(op.operands[0]), shape_of(op.operands[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {1: rows}, {}, NEED_REPLICATION)


@register_custom_call("mhlo.topk", signature="tensors -> tensors, tensors")
def top_k(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """`jax.lax.top_k`: values -> largest values, their indices. The dimension that shrinks is needed whole."""
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    shrunk = [dim for dim, size in enumerate(shape) if size != result[dim]]
    rule.add_pointwise(shape, kinds=dict.fromkeys(shrunk, NEED_REPLICATION), blocked=shrunk)


@register_custom_call("ApproxTopK", "PartialReduce", signature="tensors, tensors, scalar, scalar -> tensors, tensors")
def approximate_top_k(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """`jax.lax.approx_max_k`: values, their indices, initial value, initial index -> largest values, their indices.

    Each device can look through its own part of the dimension that shrinks.
    """
    result = shape_of(op.results[0])
    for dim, size in enumerate(shape_of(op.operands[0])):
        if size == result[dim]:
            rule.add(size, {0: dim, 1: dim}, {0: dim, 1: dim})
        else:
            rule.add(size, {0: dim, 1: dim}, {})
            rule.add(result[dim], {}, {0: dim, 1: dim}, NEED_REPLICATION, blocked=True)


@register_custom_call("X64Combine", signature="tensors, tensors -> tensors")
def combine_halves(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """The low and high halves of 64-bit integers -> the integers; a random state made of them is needed whole."""
    if any(use.operation.name == "stablehlo.rng_bit_generator" for use in op.results[0].uses):
        rule.add_pointwise(shape_of(op.results[0]), kinds={0: NEED_REPLICATION}, blocked=(0,))
    else:
        pointwise(op, rule)
