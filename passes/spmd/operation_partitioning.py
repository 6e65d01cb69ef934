"""How operations of one class are partitioned: what a family in `ops` says of each of its operations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from sdy.passes.spmd.compatibility import why_not_by_rule
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.padded_site import PaddedSite
from sdy.passes.spmd.replicated_factors import replicate_permuted
from sdy.passes.spmd.resolution import Resolution
from sdy.passes.spmd.site import Site

Exchange = Callable[[Any, Resolution], bool]
"""Lets devices exchange what an operation needs. False, and nothing is changed, where the operation's tensors must be
made whole instead."""

Replicate = Callable[[Any, Resolution], bool]
"""Lets an operation run without the axes along which it moves elements; whether tensors are made whole for that."""

Pad = Callable[[PaddedSite[Any]], bool]
"""Makes an operation the one on padded tensors. False, and nothing is changed, where it is not known how."""

WhyNot = Callable[[Any, Sequence[Layout], Sequence[Layout]], str | None]
"""Why an operation, which has tensors that are split, cannot be computed in parts; None if it can.

Its values have the types of the whole, and these layouts of operands and results.
"""

Lower = Callable[[Site[Any]], None]
"""Changes or replaces an operation, whose values have the types of one device by now."""


@dataclass(frozen=True)
class OperationPartitioning:
    """The steps from an operation on whole tensors to that of one device; a step that is not given is done as for most.

    `exchange` and `replicate` are those of `sdy-resolve-permutation-factors`, `pad` that of `sdy-pad-for-divisibility`,
    `why_not` and `lower` those of `sdy-convert-global-to-local`, which replaces the types of all values. An operation
    that is `always_lowered` says something of the whole even where none of its tensors is split.
    """

    exchange: Exchange | None = None
    replicate: Replicate = replicate_permuted
    pad: Pad | None = None
    why_not: WhyNot = why_not_by_rule
    lower: Lower | None = None
    always_lowered: bool = False
    absorbs_operands: bool = False


PartitioningTable = Mapping[type[Operation], OperationPartitioning]
"""How the operations of a family are partitioned, by their classes."""
