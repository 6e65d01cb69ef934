"""Operations with a user-written sharding rule, such as custom calls, about which nothing else is known."""

from collections.abc import Sequence

from xdsl.ir import Operation

from sdy.axes import subtract
from sdy.mesh import Mesh
from sdy.passes.common.replication_cost import LocalBytes, current_shardings, warn_of_cost
from sdy.passes.spmd.reshards.operation_plan import OperationShardings
from sdy.sharding import TensorSharding


def warn_of_what_is_whole(
    op: Operation, plan: OperationShardings, shardings: Sequence[TensorSharding | None], mesh: Mesh
) -> None:
    """Warn that `op` is replicated along the axes that split its tensors before, in `shardings`, but not in `plan`."""
    kept = [axis for axes in plan.axes_per_factor for axis in axes]
    axes_before = [axis for sharding in shardings if sharding for axes in sharding.dim_axes for axis in axes]
    if lost := [str(axis) for axis in dict.fromkeys(subtract(axes_before, kept, mesh))]:
        where = f"along {', '.join(lost)}" if kept else "on every device"
        message = f"is replicated {where}: its sharding rule does not let these dimensions be split"
        warn_of_cost(op, message, LocalBytes.by(op, shardings), LocalBytes.by(op, current_shardings(op)))
