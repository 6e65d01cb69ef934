"""Operations on padded tensors: what it takes that the elements of the result are those of the unpadded operation.

Along a factor that passes through, an element depends on elements at the same place only, so what the padding holds
ends up in the padding of the result. Where a factor is reduced, the padding is filled with what changes no result.
Operations that name sizes or places are told those of the padded tensors.
"""

from xdsl.ir import Operation
from xdsl.traits import get_effects

from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.dialect.interfaces import Elementwise
from sdy.ir.elements import splat
from sdy.ir.traits import has_trait
from sdy.passes.spmd.local.constants import splat_of_type
from sdy.passes.spmd.neutral import identities_of
from sdy.passes.spmd.padded.indexing import PADDED_INDEXING
from sdy.passes.spmd.padded.shifts import PADDED_SHIFTS
from sdy.passes.spmd.padded.site import PaddedSite, PadOperations
from sdy.rule import FactorKind
from sdy.stablehlo.batch_norm import BatchNormInferenceOp
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import CollectivePermuteOp
from sdy.stablehlo.constants import ConstantOp, IotaOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.fft import FftOp
from sdy.stablehlo.linear_algebra import CholeskyOp, TriangularSolveOp
from sdy.stablehlo.reduce_window import ReduceWindowOp
from sdy.stablehlo.reduction import ReduceOp
from sdy.stablehlo.select_and_scatter import SelectAndScatterOp
from sdy.stablehlo.shape import BitcastConvertOp, ConcatenateOp, ReshapeOp, ReverseOp, TransposeOp
from sdy.stablehlo.sort import SortOp

_PADDED = PadOperations({**PADDED_INDEXING, **PADDED_SHIFTS})


def pad_operation(site: PaddedSite[Operation]) -> bool:
    """Make an operation the one on padded tensors. False, and nothing is changed, where it is not known how."""
    pad = _carry if has_trait(site.op, Elementwise) else _PADDED.get(type(site.op))
    return pad is not None and pad(site)


@_PADDED.of(
    BatchNormInferenceOp,
    BitcastConvertOp,
    BroadcastInDimOp,
    CholeskyOp,
    ConcatenateOp,
    FftOp,
    IotaOp,
    ReduceWindowOp,
    ReshapeOp,
    ReverseOp,
    SelectAndScatterOp,
    SortOp,
    TransposeOp,
    TriangularSolveOp,
)
def _carry(site: PaddedSite[Operation]) -> bool:
    return site.carries()


@_PADDED.of(CustomCallOp)
def _custom_call(site: PaddedSite[CustomCallOp]) -> bool:
    """Who is called for its effect is not to see the padding."""
    return site.carries() and not get_effects(site.op)


@_PADDED.of(CollectivePermuteOp)
def _collective_permute(site: PaddedSite[CollectivePermuteOp]) -> bool:
    return site.operands[0].padded_shape == site.results[0].padded_shape


@_PADDED.of(ConstantOp, ShardedConstantOp)
def _constant(site: PaddedSite[ConstantOp] | PaddedSite[ShardedConstantOp]) -> bool:
    value = splat(site.op.value)
    if value is None:
        return False
    site.op.value = splat_of_type(value, tensor_type(site.op.results[0]))
    return True


@_PADDED.of(DotGeneralOp, DotOp)
def _dot(site: PaddedSite[DotGeneralOp] | PaddedSite[DotOp]) -> bool:
    """Both sides are filled with zeros: a zero on one side only would not make up for a NaN on the other."""
    if not site.carries(FactorKind.REDUCTION):
        return False
    for operand in (0, 1):
        site.fill(operand, site.reduced_dims(operand), 0)
    return True


@_PADDED.of(ReduceOp)
def _reduce(site: PaddedSite[ReduceOp]) -> bool:
    op = site.op
    if not site.carries(FactorKind.REDUCTION):
        return False
    if not any(site.reduced_dims(operand) for operand in range(len(op.inputs))):
        return True
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        return False
    for operand, identity in enumerate(identities):
        site.fill(operand, site.reduced_dims(operand), identity)
    return True
