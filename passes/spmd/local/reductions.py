"""Operations whose results are partial where a dimension that they reduce is split.

What the reduction starts from must then count once: one device of those that hold partial results, the leader, starts
from it, the others from the identity of the reduction.
"""

from sdy.passes.spmd.local.whole import compute_whole
from sdy.passes.spmd.neutral import identities_of, is_filled
from sdy.passes.spmd.parts import on_leader
from sdy.passes.spmd.site import Lowerings, Site
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.reduction import ReduceOp

REDUCTIONS = Lowerings()


@REDUCTIONS.of(ReduceOp)
def _reduce(site: Site[ReduceOp]) -> None:
    op = site.op
    axes = [axis for dim in op.dimensions.get_values() for axis in site.operands[0].axes[dim]]
    if not axes:
        return
    identities = identities_of(op.body, [tensor_type(value).element_type for value in op.inputs])
    if identities is None:
        compute_whole(site, "what it starts from would count several times")
        return
    for index, identity in enumerate(identities, len(op.inputs)):
        if not is_filled(op.operands[index], identity):
            op.operands[index] = on_leader(site.before(), op.operands[index], identity, axes, site.mesh)
