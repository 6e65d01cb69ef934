"""`sdy-sharding-group-import`: verify sharding groups, and merge those that share a value."""

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue

from sdy.diagnostics import error
from sdy.dialect.meshes import manual_computations_around
from sdy.dialect.ops import ShardingGroupOp
from sdy.ir.editing import AnalysisPreservingPass, erase
from sdy.ir.shapes import shape
from sdy.ir.walking import operations_of


class ShardingGroupImportPass(AnalysisPreservingPass):
    """Merge sharding groups that have a value in common, and number the groups from 0.

    Before::

        sdy.sharding_group %a group_id=12 : tensor<8xf32>
        sdy.sharding_group %b group_id=12 : tensor<8xf32>
        sdy.sharding_group %b group_id=7 : tensor<8xf32>
        sdy.sharding_group %c group_id=7 : tensor<8xf32>

    After::

        sdy.sharding_group %a group_id=0 : tensor<8xf32>
        sdy.sharding_group %b group_id=0 : tensor<8xf32>
        sdy.sharding_group %c group_id=0 : tensor<8xf32>

    Raises:
        DiagnosticError: A group has values of different shapes, or values in different manual computations.
    """

    name = "sdy-sharding-group-import"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        memberships = operations_of(op, ShardingGroupOp)
        _check(memberships)
        groups_of: dict[SSAValue, list[ShardingGroupOp]] = {}
        for membership in memberships:
            groups_of.setdefault(membership.input, []).append(membership)
        numbers = _number([[_id(group) for group in groups] for groups in groups_of.values()])
        for kept, *repeated in groups_of.values():
            kept.properties["group_id"] = IntegerAttr(numbers[_id(kept)], 64)
            for membership in repeated:
                erase(membership)


def _id(membership: ShardingGroupOp) -> int:
    return membership.group_id.value.data


def _check(memberships: Sequence[ShardingGroupOp]) -> None:
    first_of: dict[int, ShardingGroupOp] = {}
    for membership in memberships:
        group = _id(membership)
        first = first_of.setdefault(group, membership)
        computation, first_computation = (next(manual_computations_around(each), None) for each in (membership, first))
        if computation is not first_computation:
            raise error(
                membership, f"ShardingGroupOps values cannot cross ManualComputationOp boundaries for groupId: {group}"
            )
        if shape(membership.input.type) != shape(first.input.type):
            raise error(membership, f"ShardingGroupOps values must have the same shape for groupId: {group}")


def _number(same_groups: list[list[int]]) -> dict[int, int]:
    """Number the group ids from 0 in order of appearance; ids that occur in one list get the same number."""
    leader: dict[int, int] = {}
    for first, *others in same_groups:
        leader.setdefault(first, first)
        for other in others:
            kept, merged = leader[first], leader.setdefault(other, other)
            leader = {group: kept if led_by == merged else led_by for group, led_by in leader.items()}
    order = [group for group, led_by in leader.items() if group == led_by]
    return {group: order.index(led_by) for group, led_by in leader.items()}
