"""Replication of permutation factors, along which an operation moves elements: the fallback for a halo exchange."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from xdsl.ir import Operation, Use
from xdsl.rewriter import InsertPoint

from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.factors import TensorFactors, project, unproject
from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.ir.shapes import rank
from sdy.passes.spmd.emit.resolution import Resolution
from sdy.passes.spmd.plan.operation_plan import choose_mesh
from sdy.passes.spmd.shards.layout import mesh_of_devices
from sdy.rule import OpShardingRule
from sdy.rules import sharding_rule
from sdy.sharding import TensorSharding


def replicate_permuted(op: Operation, resolution: Resolution) -> bool:
    """Replicate the permutation factors of `op` by reshards around it; return whether any was sharded."""
    rule = permuting_rule(op)
    return rule is not None and bool(rule.permutation) and replicate_factors(op, rule, rule.permutation)


def permuting_rule(op: Operation) -> OpShardingRule | None:
    """Return the registered sharding rule of `op`; None if it has no rule or a custom one."""
    rule = sharding_rule(op)
    return None if rule is None or rule.is_custom else rule


def replicate_factors(op: Operation, rule: OpShardingRule, factors: Collection[int]) -> bool:
    """Replicate `factors` of `op` by reshards around it; return whether any was sharded."""
    values = (*op.operands, *op.results)
    shardings = [get_sharding(value) for value in values]
    meshes = {sharding.mesh: mesh_of_devices(sharding, op) for sharding in shardings if sharding is not None}
    name = choose_mesh(shardings, meshes)
    if name is None:
        return False
    mesh = meshes[name]
    missing = [TensorSharding.replicated_closed(name, rank(value.type)) for value in values]
    filled = [sharding or replicated for sharding, replicated in zip(shardings, missing, strict=True)]
    wanted = [
        unproject(_without(tensor, factors), mapping, rule.factor_sizes, name, mesh).close()
        if any(tensor.factors[factor].axes for factor in tensor.factors.keys() & set(factors))
        else None
        for tensor, mapping in zip(project(rule, filled, mesh).tensors, rule.tensors, strict=True)
    ]
    return reshard_around(op, wanted)


def reshard_around(op: Operation, shardings: Sequence[TensorSharding | None]) -> bool:
    """Reshard the operands and results of `op` to `shardings`; return whether any reshard was inserted.

    Args:
        op: The operation.
        shardings: The shardings of the operands, then of the results; None keeps the present one.
    """
    for index, sharding in enumerate(shardings):
        if sharding is None:
            continue
        if index < len(op.operands):
            insert_for_use(Use(op, index), ReshardOp(op.operands[index], sharding), InsertPoint.before(op))
            continue
        result = op.results[index - len(op.operands)]
        outside = get_sharding(result)
        assert outside is not None
        insert_for_other_uses(result, ReshardOp(result, outside), InsertPoint.after(op))
        set_sharding(result, sharding)
    return any(sharding is not None for sharding in shardings)


def _without(tensor: TensorFactors, factors: Collection[int]) -> TensorFactors:
    return replace(
        tensor,
        factors={
            factor: replace(part, axes=(), overflow=()) if factor in factors else part
            for factor, part in tensor.factors.items()
        },
    )
