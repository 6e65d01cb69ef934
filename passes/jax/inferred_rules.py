"""The older callbacks of `jax.experimental.custom_partitioning`, which are asked for shardings, as sharding rules.

jax takes them in the place of a rule where it lowers for GSPMD, with `jax_use_shardy_partitioner` off.
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
from sdy.passes.jax.custom_partitioning import customly_partitioned
from sdy.passes.jax.device_mesh import AnyMesh, Device
from sdy.passes.jax.placed_values import placed_values
from sdy.rule import OpShardingRule
from sdy.rules.annotation import parse_annotation
from sdy.stablehlo.custom_call import CustomCallOp

_Dim = tuple[int, int]
"""The number of a tensor, and that of a dimension of it."""


def infer_rules(module: ModuleOp, devices: Sequence[Device], kept_alive: Sequence[Any]) -> None:
    """Give a rule to each operation whose author infers the shardings of its results from its operands', in place.

    The author is asked about each dimension of the operands, with nothing else split: it has one factor with the
    dimensions of the results that are then split too. Other dimensions of the results stay whole. `kept_alive` are the
    objects that the lowering of `module`, a program for `devices`, keeps alive. Raises DiagnosticError where an author
    answers with what is no sharding of the program's mesh.
    """
    for op, author in customly_partitioned(module, kept_alive):
        if author.infer_sharding_from_operands is not None and SHARDING_RULE not in op.attributes:
            (first, *_) = placed_values(module, op.results, devices)
            op.attributes[SHARDING_RULE] = OpShardingRuleAttr(_rule(op, author, first.mesh))


def _rule(op: CustomCallOp, author: Any, mesh: AnyMesh) -> OpShardingRule:
    operands, results = ([shape(value.type) for value in values] for values in (op.operands, op.results))
    factors: dict[_Dim, str] = {}
    given: list[list[str]] = []
    for number, sizes in enumerate(operands):
        names: list[str] = []
        for dim in range(len(sizes)):
            split = _split_with((number, dim), op, author, mesh)
            known = (factors[each] for each in split if each in factors)
            name = next((name for name in known if name not in names), f"operand_{number}_{dim}")
            factors = dict.fromkeys(split, name) | factors
            names.append(name)
        given.append(names)
    own = [[f"result_{number}_{dim}" for dim in range(len(sizes))] for number, sizes in enumerate(results)]
    made = [[factors.get((number, dim), name) for dim, name in enumerate(names)] for number, names in enumerate(own)]
    whole = [name for names, used in zip(own, made, strict=True) for name in names if name in used]
    before, after = (", ".join(map(" ".join, tensors)) for tensors in (given, made))
    kinds = f"need_replication={{{', '.join(whole)}}}" if whole else ""
    return parse_annotation(f"{before} -> {after} {kinds}").rule(operands, results)


def _split_with(dim: _Dim, op: CustomCallOp, author: Any, mesh: AnyMesh) -> list[_Dim]:
    """The dimensions of the results that `author` says are split where this one of the operands is, and no other."""
    axis = max(mesh.shape, key=lambda name: mesh.shape[name])
    arguments: list[jax.ShapeDtypeStruct] = []
    for number, operand in enumerate(op.operands):
        axes = [axis if (number, index) == dim else None for index in range(rank(operand.type))]
        sharding = NamedSharding(mesh, PartitionSpec(*axes))
        arguments.append(jax.ShapeDtypeStruct(*array_type(operand.type, op), sharding=sharding))
    results = [jax.ShapeDtypeStruct(*array_type(result.type, op)) for result in op.results]
    trees = author.in_tree.unflatten(arguments), author.out_tree.unflatten(results)
    answer = tree_leaves(author.infer_sharding_from_operands(*author.static_args, mesh, *trees))
    for sharding in answer:
        if not isinstance(sharding, NamedSharding):
            raise op_error(op, f"is said by its author to have the sharding {sharding}, which is none of a mesh")
    specs = [sharding.spec for sharding in answer]
    return [
        (number, index)
        for number, spec in enumerate(specs)
        for index, entry in enumerate(spec)
        if axis in (entry if isinstance(entry, tuple) else (entry,))
    ]
