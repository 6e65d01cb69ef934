"""Rules of the custom calls of JAX and XLA."""

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

_PARTITIONED_CALLBACKS = "xla_ffi_partitioned_python_cpu_callback xla_ffi_partitioned_python_gpu_callback"

register_custom_call(*_POINTWISE.split())(pointwise)


@register_custom_call(*_PARTITIONED_CALLBACKS.split())
def partitioned_callback(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Allow any sharding of each operand: each device calls the function with its own shards."""
    for number, operand in enumerate(op.operands):
        for dim, size in enumerate(shape_of(operand)):
            rule.add(size, {number: dim}, {}, REDUCTION)


@register_custom_call("Eigh", signature="matrices -> matrices, vectors")
def eigh(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Add the factors of `jax.lax.linalg.eigh`: matrices -> eigenvectors, eigenvalues."""
    shape = shape_of(op.operands[0])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows})
    rule.add(shape[columns], {0: columns}, {0: columns, 1: rows})


@register_custom_call("Qr", "QrDecompositionBlock", signature="matrices -> matrices, vectors")
def qr(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Add the factors of `jax.lax.linalg.qr`: matrices -> packed matrices, scales of the Householder reflectors.

    All but the batch dimensions require replication.
    """
    shape, scales = shape_of(op.operands[0]), shape_of(op.results[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {}, {1: rows}, NEED_REPLICATION)


@register_custom_call("ProductOfElementaryHouseholderReflectors", signature="matrices, vectors -> matrices")
def householder_product(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Add the factors of `jax.lax.linalg.householder_product`: matrices, scales -> matrices.

    All but the batch dimensions require replication.
    """
    shape, scales = shape_of(op.operands[0]), shape_of(op.operands[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {1: rows}, {}, NEED_REPLICATION)


@register_custom_call("mhlo.topk", signature="tensors -> tensors, tensors")
def top_k(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Add the factors of `jax.lax.top_k`: values -> largest values, their indices.

    The dimension whose size changes requires replication.
    """
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    shrunk = [dim for dim, size in enumerate(shape) if size != result[dim]]
    rule.add_pointwise(shape, kinds=dict.fromkeys(shrunk, NEED_REPLICATION), blocked=shrunk)


@register_custom_call("ApproxTopK", "PartialReduce", signature="tensors, tensors, scalar, scalar -> tensors, tensors")
def approximate_top_k(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """Add the factors of `jax.lax.approx_max_k`.

    The operands are the values, their indices, the initial value and the initial index; the results the largest values
    and their indices. Each device can search its own shard of the dimension whose size changes.
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
    """Add the factors of the combination of 64-bit integers from their halves; pointwise, except for random states.

    The state of a random number generator requires replication.
    """
    if any(use.operation.name == "stablehlo.rng_bit_generator" for use in op.results[0].uses):
        rule.add_pointwise(shape_of(op.results[0]), kinds={0: NEED_REPLICATION}, blocked=(0,))
    else:
        pointwise(op, rule)
