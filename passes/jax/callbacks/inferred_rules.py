"""Sharding rules inferred from the GSPMD callbacks of `jax.experimental.custom_partitioning`.

The callback `infer_sharding_from_operands` replaces a rule when jax lowers for GSPMD (`jax_use_shardy_partitioner`
off).
"""

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jax.tree_util import tree_leaves
from xdsl.dialects.builtin import ModuleOp

from sdy.array_types import array_type
from sdy.diagnostics import op_error
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.ir.shapes import rank, shape
from sdy.passes.jax.callbacks.custom_partitioning import customly_partitioned
from sdy.passes.jax.device_mesh import AnyMesh, Device, placed_values
from sdy.rule import OpShardingRule
from sdy.rules.annotation import parse_annotation
from sdy.stablehlo.custom_call import CustomCallOp

_Dim = tuple[int, int]
"""The index of an operand or result, and the index of one of its dimensions."""


def infer_rules(module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any]) -> None:
    """Attach a sharding rule to each operation with an `infer_sharding_from_operands` callback, in place.

    The callback is called once for each operand dimension, with only this dimension sharded: the dimension shares a
    factor with the result dimensions that the callback shards. All other result dimensions need replication.

    Args:
        module: The module to annotate.
        devices: The devices of the program.
        kept_alive: The objects that the lowering of `module` keeps alive.

    Raises:
        DiagnosticError: a callback returns something else than a sharding of the program's mesh.
    """
    for op, author in customly_partitioned(module, kept_alive):
        if author.infer_sharding_from_operands is not None and SHARDING_RULE not in op.attributes:
            (first, *_) = placed_values(module, op.results, devices)
            op.attributes[SHARDING_RULE] = OpShardingRuleAttr(_rule(op, author, first.mesh))


def _rule(op: CustomCallOp, author: Any, mesh: AnyMesh) -> OpShardingRule:
    operands, results = ([shape(value.type) for value in values] for values in (op.operands, op.results))
    factors: dict[_Dim, str] = {}
    inputs: list[list[str]] = []
    for number, sizes in enumerate(operands):
        names: list[str] = []
        for dim in range(len(sizes)):
            split = _split_with((number, dim), op, author, mesh)
            known = (factors[each] for each in split if each in factors)
            name = next((name for name in known if name not in names), f"operand_{number}_{dim}")
            factors = dict.fromkeys(split, name) | factors
            names.append(name)
        inputs.append(names)
    own = [[f"result_{number}_{dim}" for dim in range(len(sizes))] for number, sizes in enumerate(results)]
    outputs = [[factors.get((number, dim), name) for dim, name in enumerate(names)] for number, names in enumerate(own)]
    replicated = [name for names, used in zip(own, outputs, strict=True) for name in names if name in used]
    before, after = (", ".join(map(" ".join, tensors)) for tensors in (inputs, outputs))
    kinds = f"need_replication={{{', '.join(replicated)}}}" if replicated else ""
    return parse_annotation(f"{before} -> {after} {kinds}").rule(operands, results)


def _split_with(dim: _Dim, op: CustomCallOp, author: Any, mesh: AnyMesh) -> list[_Dim]:
    """Return the result dimensions that `author` shards if `dim` is the only sharded operand dimension."""
    axis = max(mesh.shape, key=lambda name: mesh.shape[name])
    arguments: list[jax.ShapeDtypeStruct] = []
    for number, operand in enumerate(op.operands):
        axes = [axis if (number, index) == dim else None for index in range(rank(operand.type))]
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        arguments.append(jax.ShapeDtypeStruct(*array_type(operand.type, op), sharding=sharding))
    results = [jax.ShapeDtypeStruct(*array_type(result.type, op)) for result in op.results]
    trees = author.in_tree.unflatten(arguments), author.out_tree.unflatten(results)
    inferred = tree_leaves(author.infer_sharding_from_operands(*author.static_args, mesh, *trees))
    for sharding in inferred:
        if not isinstance(sharding, NamedSharding):
            raise op_error(op, f"has the inferred sharding {sharding}, which is not a NamedSharding")
    specs = [sharding.spec for sharding in inferred]
    return [
        (number, index)
        for number, spec in enumerate(specs)
        for index, entry in enumerate(spec)
        if axis in (entry if isinstance(entry, tuple) else (entry,))
    ]
