"""Replication of permutation factors, along which an operation moves elements: the fallback for a halo exchange."""

from collections.abc import Collection
from dataclasses import replace

from xdsl.ir import Operation

from sdy.dialect.shardings import get_sharding
from sdy.factors import TensorFactors, project, unproject
from sdy.ir.shapes import rank
from sdy.passes.spmd.emit.operation_reshards import reshard_around
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


def _without(tensor: TensorFactors, factors: Collection[int]) -> TensorFactors:
    return replace(
        tensor,
        factors={
            factor: replace(part, axes=(), overflow=()) if factor in factors else part
            for factor, part in tensor.factors.items()
        },
    )
