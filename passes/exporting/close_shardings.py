"""`sdy-close-shardings`: close every dimension of every sharding."""

from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.ir.editing import AnalysisPreservingPass
from sdy.passes.common.sharding_walk import transform_shardings
from sdy.sharding import DimSharding, TensorSharding


class CloseShardingsPass(AnalysisPreservingPass):
    """Close all dimensions after propagation, and remove explicitly replicated axes, which only guide propagation.

    Before::

        %0 = sdy.reshard %arg0 <@mesh, [{"x", ?}, {?}], replicated={"y"}> : tensor<8x8xf32>

    After::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    """

    name = "sdy-close-shardings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        transform_shardings(op, close_sharding)


def close_sharding(sharding: TensorSharding) -> TensorSharding:
    """Return `sharding` with all dimensions closed and without replicated axes."""
    return replace(sharding.close().map_dims(DimSharding.without_idle_priority), replicated=())
