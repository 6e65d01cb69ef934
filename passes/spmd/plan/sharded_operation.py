"""An operation with its sharding rule, the shardings of its values, and the mesh on which it runs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import Operation

from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import get_sharding_behind_barriers
from sdy.ir.shapes import num_elements
from sdy.mesh import Mesh
from sdy.operators.registry import operator_rule_of
from sdy.passes.spmd.plan.operation_plan import Meshes, Tensors, choose_mesh
from sdy.passes.spmd.plan.reduction_kinds import operation_reduction
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import Reduction, TensorSharding

if TYPE_CHECKING:
    from sdy.operators.rules import OperatorRule

Shardings: TypeAlias = tuple[TensorSharding | None, ...]
"""The shardings of the operands, then of the results; None for a value without a sharding."""


@dataclass(frozen=True)
class ShardedOperation:
    """Input of the planning of one operation.

    Attributes:
        op: The operation.
        rule: Its sharding rule.
        operator: The rule of the annotated operator that it calls, or None.
        shardings: The shardings of its operands, then of its results.
        mesh_name: The mesh on which it runs, by name or inlined.
        meshes: All meshes that the shardings refer to.
        reduction: The reduction that combines its partial results, or None if no collective combines them.
    """

    op: Operation
    rule: OpShardingRule
    operator: "OperatorRule | None"
    shardings: Shardings
    mesh_name: str | Mesh
    meshes: Meshes
    reduction: Reduction | None

    @classmethod
    def of(cls, op: Operation, shardings: Shardings) -> "ShardedOperation | None":
        """Return the planning input of `op`, or None if it has no sharding rule or no mesh of several devices.

        Call it before reshards are inserted, which would hide the constant initial values of sums.
        """
        named = {sharding.mesh: sharding for sharding in shardings if sharding is not None}
        meshes = {name: mesh_of(sharding, op) for name, sharding in named.items()}
        mesh_name = choose_mesh(shardings, meshes)
        rule = sharding_rule(op) if mesh_name is not None else None
        if mesh_name is None or rule is None:
            return None
        return cls(op, rule, operator_rule_of(op), shardings, mesh_name, meshes, operation_reduction(op))

    @property
    def mesh(self) -> Mesh:
        """The mesh on which the operation runs."""
        return self.meshes[self.mesh_name]

    @property
    def is_opaque(self) -> bool:
        """True if nothing is known of the operation but a rule that the user wrote, as of a custom call."""
        return self.rule.is_custom and self.operator is None

    def tensors(self, rule: OpShardingRule) -> Tensors:
        """Return the operands and results, to be sharded by `rule`."""
        return Tensors(rule, self.shardings, tuple(map(num_elements, (*self.op.operands, *self.op.results))))


def shardings_around(op: Operation) -> Shardings:
    """Return the shardings of the operands, then of the results."""
    return tuple([get_sharding_behind_barriers(value) for value in (*op.operands, *op.results)])
