"""`sdy-make-where-needed`: what is made of nothing is made once more where it is wanted otherwise, and not moved."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.dialect import ConstantOp as ShardedConstantOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import set_sharding
from sdy.dialect.walk import operations_of
from sdy.passes.common.editing import TellingPass, before_barriers, erase, replace
from sdy.passes.common.tensors import is_scalar
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp, IotaOp


@dataclass(frozen=True)
class MakeWhereNeededPass(TellingPass):
    """Replace reshards of constants, iotas and repeated scalars by others, which have the sharding that is wanted.

    Before::

        sdy.mesh @mesh = <["x"=4]>
        %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xi32>
        %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<8x8xi32>

    After::

        %1 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xi32>

    A device makes its part of these by itself, so that nothing has to be sent.
    """

    name = "sdy-make-where-needed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for reshard in operations_of(op, ReshardOp):
            maker = _maker(before_barriers(reshard.input))
            if maker is not None:
                copy = maker.clone()
                set_sharding(copy.results[0], reshard.sharding.data)
                copy.location = maker.location
                replace(reshard, copy)
                if maker.results[0].first_use is None:
                    erase(maker)


def _maker(value: SSAValue) -> Operation | None:
    """What makes `value`, if no tensor is needed for it."""
    match value.owner:
        case ConstantOp() | ShardedConstantOp() | IotaOp():
            return value.owner
        case BroadcastInDimOp() if is_scalar(value.owner.operand):
            return value.owner
        case _:
            return None
