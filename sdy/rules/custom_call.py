"""Custom calls: the targets that JAX and XLA use, which are pointwise, without a rule, or have one of their own.

The last are the functions of `jax.lax.linalg` and `jax.lax` named at each. Another target can be added with
`register_custom_call`; otherwise a custom call has the rule it is given, as `sdy.sharding_rule`, or none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sdy.diagnostics import error
from sdy.ir.shapes import shape_of
from sdy.rules.builder import NEED_REPLICATION, REDUCTION, RuleBuilder
from sdy.rules.elementwise import pointwise
from sdy.rules.registry import NoRule, register

if TYPE_CHECKING:
    from sdy.stablehlo.custom_call import CustomCallOp

_POINTWISE = """
    annotate_device_placement Cholesky CompactWyHelper InspectSharding InvertDiagBlocksLowerTriangular
    InvertDiagBlocksUpperTriangular LayoutConstraint mhlo.erf MoveToDevice MoveToHost X64SplitHigh X64SplitLow
    xla.megascale.provide_metadata
    _SPMDInternalOp_MultiPad _SPMDInternalOp_MultiRotate _SPMDInternalOp_MultiSlice _SPMDInternalOp_RotateRight
    _SPMDInternalOp_Wrap
"""

_WITHOUT_RULE = """
    sdy_testonly tpu_custom_call xla_python_cpu_callback xla_python_gpu_callback xla_ffi_python_cpu_callback
    xla_ffi_python_gpu_callback xla.debug.Log CustomSPMDPartitioning
"""

_IN_ANY_PARTS = "xla_ffi_partitioned_python_cpu_callback xla_ffi_partitioned_python_gpu_callback"

POINTWISE = frozenset(_POINTWISE.split())
WITHOUT_RULE = frozenset(_WITHOUT_RULE.split())

IN_ANY_PARTS = frozenset(_IN_ANY_PARTS.split())

CustomCallRule = Callable[["CustomCallOp", RuleBuilder], None]


class _CallSignature(NamedTuple):
    """What a target's operands and results are: "tensors" of the first operand's rank, "matrices", "vectors", "scalar".

    Matrices and vectors have the batch dimensions of the first operand before their own.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]

    def __str__(self) -> str:
        return f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"

    def fits(self, op: "CustomCallOp") -> bool:
        """Whether the operands and results of `op` have the ranks that this asks for."""
        rank = len(shape_of(op.operands[0])) if op.operands else 0
        ranks = {"tensors": rank, "matrices": max(rank, 2), "vectors": max(rank, 2) - 1, "scalar": 0}
        return all(
            [len(shape_of(value)) for value in values] == [ranks[name] for name in names]
            for values, names in ((op.operands, self.operands), (op.results, self.results))
        )


_targets: dict[str, tuple[_CallSignature, CustomCallRule]] = {}


def register_custom_call(*targets: str, signature: str) -> Callable[[CustomCallRule], CustomCallRule]:
    """A decorator that makes a function the rule of custom calls to `targets`.

    A call that doesn't have the `signature`, such as "matrices, scalar -> tensors, vectors", is an error.
    """
    operands, results = (tuple(side.split(", ")) for side in signature.split(" -> "))

    def add(function: CustomCallRule) -> CustomCallRule:
        _targets.update(dict.fromkeys(targets, (_CallSignature(operands, results), function)))
        return function

    return add


@register("stablehlo.custom_call", looks_around=True)
def custom_call(op: "CustomCallOp", rule: RuleBuilder) -> None:
    """The rule of the call's target."""
    name = op.call_target_name.data
    if name in WITHOUT_RULE:
        raise NoRule
    if name in POINTWISE:
        pointwise(op, rule)
    elif name in IN_ANY_PARTS:
        _in_any_parts(op, rule)
    elif name in _targets:
        signature, function = _targets[name]
        if not signature.fits(op):
            raise error(op, f"expected custom call @{name} to have the signature {signature}")
        function(op, rule)
    else:
        raise NoRule(f"custom call @{name} is unknown to SDY sharding rule registry")


def _in_any_parts(op: "CustomCallOp", rule: RuleBuilder) -> None:
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
