"""Interface of partitioning rules: the hooks that a module of `ops` implements for each operation class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from sdy.mesh import Mesh
from sdy.passes.spmd.emit.compatibility import illegality_by_rule
from sdy.passes.spmd.emit.illegality import Illegality
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.emit.replicated_factors import replicate_permuted
from sdy.passes.spmd.emit.resolution import Resolution
from sdy.passes.spmd.shards.layout import Layout
from sdy.rule import OpShardingRule
from sdy.sharding import TensorSharding

Exchange = Callable[[Any, Resolution], bool]
"""Rewrites an operation to exchange the rows it needs between devices.

Returns False, without changes, if the tensors must be replicated instead.
"""

Replicate = Callable[[Any, Resolution], bool]
"""Replicates the tensors of an operation along the axes along which it moves elements; returns whether any was."""

Pad = Callable[[PaddedConversion[Any]], bool]
"""Rewrites an operation for padded tensors. Returns False, without changes, if this is not supported."""

SpecialRule = Callable[[Any, OpShardingRule, Sequence[TensorSharding | None], Mesh], OpShardingRule]
"""Returns the rule of an operation, given the shardings of its operands, then of its results, and its mesh."""

FindIllegality = Callable[[Any, Sequence[Layout], Sequence[Layout]], Illegality | None]
"""Returns why an operation, with unpartitioned types and these layouts, cannot be partitioned; None if it can."""

Lower = Callable[[OpConversion[Any]], None]
"""Rewrites or replaces an operation whose values have the types of one device's shards already."""


@dataclass(frozen=True)
class OperationPartitioning:
    """The partitioning of an operation class, as hooks of the partitioning passes.

    Attributes:
        exchange: Hook of `sdy-resolve-permutation-factors`: halo exchange.
        replicate: Hook of `sdy-resolve-permutation-factors`: the fallback if there is no exchange.
        pad: Hook of `sdy-pad-for-divisibility`.
        illegality: Hook of `sdy-convert-global-to-local`: the legality check.
        lower: Hook of `sdy-convert-global-to-local`, called after the types of all values are replaced.
        always_lowered: Call `lower` even if no operand or result is sharded.
        absorbs_operands: Exchange before the producers of the operands do, and fuse them into the same exchange.
        rule: Hook of `sdy-insert-explicit-reshards` with least communication: a rule in place of the registered one.
    """

    exchange: Exchange | None = None
    replicate: Replicate = replicate_permuted
    pad: Pad | None = None
    illegality: FindIllegality = illegality_by_rule
    lower: Lower | None = None
    always_lowered: bool = False
    absorbs_operands: bool = False
    rule: SpecialRule | None = None


PartitioningTable = Mapping[type[Operation], OperationPartitioning]
"""The partitioning of the operations of a family, by class."""
