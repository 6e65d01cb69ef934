"""Custom calls: the targets that JAX and XLA use, which are pointwise, without a rule, or have one of their own.

The last are the functions of `jax.lax.linalg` and `jax.lax` named at each. Another target can be added with
`register_custom_call`; otherwise a custom call has the rule it is given, as `sdy.sharding_rule`, or none.
"""

from collections.abc import Callable
from typing import NamedTuple

from sdy.diagnostics import error
from sdy.rules.builder import NEED_REPLICATION, RuleBuilder, shape_of
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import NoRule, register
from sdy.stablehlo import CustomCallOp, RngBitGeneratorOp

_POINTWISE = """
    annotate_device_placement Cholesky CompactWyHelper InspectSharding InvertDiagBlocksLowerTriangular
    InvertDiagBlocksUpperTriangular LayoutConstraint mhlo.erf MoveToDevice MoveToHost X64SplitHigh X64SplitLow
    xla.megascale.provide_metadata
    _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate _SPMDInternalOp_MultiSlice _SPMDInternalOp_RotateRight
    _SPMDInternalOp_Wrap
"""

_WITHOUT_RULE = """
    sdy_testonly tpu_custom_call xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
    xla_ffi_python_gpu_callback xla.debug.Log
"""

POINTWISE = frozenset(_POINTWISE.split())
WITHOUT_RULE = frozenset(_WITHOUT_RULE.split())

CustomCallRule = Callable[[CustomCallOp, RuleBuilder], None]


class _Target(NamedTuple):
    add_factors: CustomCallRule
    num_operands: int
    num_results: int


_targets: dict[str, _Target] = {}


def register_custom_call(*targets: str, operands: int, results: int) -> Callable[[CustomCallRule], CustomCallRule]:
    """A decorator that makes a function the rule of custom calls to `targets`, with so many operands and results."""

    def add(function: CustomCallRule) -> CustomCallRule:
        _targets.update(dict.fromkeys(targets, _Target(function, operands, results)))
        return function

    return add


@register("stablehlo.custom_call", looks_around=True)
def custom_call(op: CustomCallOp, rule: RuleBuilder) -> None:
    """The rule of the call's target."""
    name = op.call_target_name.data
    if name in WITHOUT_RULE:
        raise NoRule
    if name in POINTWISE:
        pointwise(op, rule)
    elif (target := _targets.get(name)) is not None:
        expected = (target.num_operands, target.num_results)
        if (len(op.operands), len(op.results)) != expected:
            raise error(op, "custom call @{} should have {} operand(s) and {} result(s)".format(name, *expected))
        target.add_factors(op, rule)
    else:
        raise NoRule(f"custom call @{name} is unknown to SDY sharding rule registry")


@register_custom_call("Eigh", operands=1, results=2)
def eigh(op: CustomCallOp, rule: RuleBuilder) -> None:
    """`jax.lax.linalg.eigh`: matrices -> eigenvectors, eigenvalues."""
    shape = shape_of(op.operands[0])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows})
    rule.add(shape[columns], {0: columns}, {0: columns, 1: rows})


@register_custom_call("Qr", "QrDecompositionBlock", operands=1, results=2)
def qr(op: CustomCallOp, rule: RuleBuilder) -> None:
    """`jax.lax.linalg.qr`: matrices -> packed matrices, reflectors' scales. Only the batches can be split."""
    shape, scales = shape_of(op.operands[0]), shape_of(op.results[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {}, {1: rows}, NEED_REPLICATION)


@register_custom_call("ProductOfElementaryHouseholderReflectors", operands=2, results=1)
def householder_product(op: CustomCallOp, rule: RuleBuilder) -> None:
    """`jax.lax.linalg.householder_product`: matrices, scales -> matrices. Only the batches can be split."""
    shape, scales = shape_of(op.operands[0]), shape_of(op.operands[1])
    rows, columns = len(shape) - 2, len(shape) - 1
    rule.add_pointwise(shape[:rows])
    rule.add(shape[rows], {0: rows}, {0: rows}, NEED_REPLICATION)
    rule.add(shape[columns], {0: columns}, {0: columns}, NEED_REPLICATION)
    rule.add(scales[rows], {1: rows}, {}, NEED_REPLICATION)


@register_custom_call("mhlo.topk", operands=1, results=2)
def top_k(op: CustomCallOp, rule: RuleBuilder) -> None:
    """`jax.lax.top_k`: values -> largest values, their indices. The dimension that shrinks is needed whole."""
    shape, result = shape_of(op.operands[0]), shape_of(op.results[0])
    shrunk = [dim for dim, size in enumerate(shape) if size != result[dim]]
    rule.add_pointwise(shape, kinds=dict.fromkeys(shrunk, NEED_REPLICATION), blocked=shrunk)


@register_custom_call("ApproxTopK", "PartialReduce", operands=4, results=2)
def approximate_top_k(op: CustomCallOp, rule: RuleBuilder) -> None:
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


@register_custom_call("X64Combine", operands=2, results=1)
def combine_halves(op: CustomCallOp, rule: RuleBuilder) -> None:
    """The low and high halves of 64-bit integers -> the integers; a random state made of them is needed whole."""
    if any(isinstance(use.operation, RngBitGeneratorOp) for use in op.results[0].uses):
        rule.add_pointwise(shape_of(op.results[0]), kinds={0: NEED_REPLICATION}, blocked=(0,))
    else:
        pointwise(op, rule)
