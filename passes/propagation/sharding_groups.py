"""Initial synchronization of sharding groups, whose members always have the same sharding."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.diagnostics import LostShardingWarning, warn
from sdy.dialect.interfaces import defining_op
from sdy.dialect.ops import ShardingConstraintOp, ShardingGroupOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import after_value, insert_for_other_uses
from sdy.ir.walking import operations_of
from sdy.sharding import TensorSharding


def synchronize_groups(module: ModuleOp) -> None:
    """Give all members of each sharding group the sharding of the member that has one.

    If members have different shardings, insert an open sharding constraint after each member, which becomes the member
    in its place, and warn.
    """
    memberships: dict[int, list[ShardingGroupOp]] = {}
    for op in operations_of(module, ShardingGroupOp):
        memberships.setdefault(op.group_id.value.data, []).append(op)
    for group, members in sorted(memberships.items()):
        shardings = _known_shardings([member.input for member in members])
        if len(shardings) == 1:
            for member in members:
                set_sharding(member.input, shardings[0])
        elif shardings:
            _warn(group, members[0])
            for member in members:
                _constrain(member.input, shardings[0])


def _known_shardings(values: list[SSAValue]) -> list[TensorSharding]:
    """Return the distinct shardings of `values`; for several values, without open shardings that have no axes."""
    shardings = [sharding for value in values if (sharding := get_sharding(value)) is not None]
    if len(values) > 1:
        shardings = [sharding for sharding in shardings if any(dim.axes or dim.is_closed for dim in sharding.dims)]
    return list(dict.fromkeys(shardings))


def _warn(group: int, member: ShardingGroupOp) -> None:
    warn(
        defining_op(member.input),
        f"The initial operand shardings on the sharding groups of groupID: {group} do not match. Inserting an open "
        "sharding constraint to all constrained values. This can be caused when shardings from different values are "
        "grouped (e.g. from jax.shard_alike) but have separate inconsistent sharding constraints on them.",
        category=LostShardingWarning,
    )


def _constrain(value: SSAValue, like: TensorSharding) -> None:
    constraint = ShardingConstraintOp(value, TensorSharding.replicated_open(like.mesh, like.rank))
    insert_for_other_uses(value, constraint, after_value(value))
