"""Reasons why an operation cannot be partitioned."""

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Reason why an operation cannot be partitioned; the value is the text of messages, with `{dim}` to fill in."""

    DIFFERENT_MESHES = "its tensors are sharded over different meshes"
    NO_RULE = "it has no sharding rule"
    """A custom sharding rule removes this reason."""
    INCOMPATIBLE_SHARDINGS = "its shardings are incompatible"
    """`sdy-insert-explicit-reshards` removes this reason."""
    INCOMPATIBLE_DIM = "dimension {dim} has incompatible shardings"
    UNSPLITTABLE_DIM = "a dimension is sharded that the operation does not allow to be"
    DATA_OF_OTHERS = "a device would need data of other devices"
    DATA_OF_OTHERS_ALONG_DIM = "dimension {dim} is sharded, and a device would need data of other devices"
    CONCATENATED_DIM = "dimension {dim} is sharded but the concatenation is on this dimension."
    UNCOMBINED_PARTIALS = "nothing combines the partial results"
    INITIAL_VALUE_COMBINED = "its initial value would be combined several times"
    INPUTS_COMBINED = "its inputs would be combined several times"
    RANDOM_BY_SHAPE = "the random numbers of a shard depend on the global shape"
    SMALLER_UPDATE = "its update is split along a dimension in which it is smaller than the operand"


@dataclass(frozen=True, slots=True)
class Illegality:
    """Why an operation with some shardings cannot be partitioned.

    Attributes:
        reason: The reason.
        dim: The dimension in question, if it is that of a single dimension.
    """

    reason: Reason
    dim: int | None = None

    def __str__(self) -> str:
        return self.reason.value.format(dim=self.dim)
