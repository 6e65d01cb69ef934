"""The traits of an operation, found once for its class: passes ask for them at every operation."""

from functools import cache
from typing import Any, TypeVar, cast

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, OpTrait

TraitT = TypeVar("TraitT", bound=OpTrait)


def trait_of(op: Operation, trait: type[TraitT]) -> TraitT | None:
    """The trait of this class that `op` has; None where it has none, or is not registered."""
    return cast("TraitT | None", trait_of_class(op.__class__, trait))


def has_trait(op: Operation, trait: type[OpTrait]) -> bool:
    """Whether `op` is registered and has a trait of this class."""
    return trait_of_class(op.__class__, trait) is not None


def is_terminator(op: Operation) -> bool:
    """Whether `op` ends its block."""
    return trait_of_class(op.__class__, IsTerminator) is not None


@cache
def trait_of_class(op_class: type[Operation], trait: type[OpTrait]) -> Any:
    """The trait of this class that operations of class `op_class` have; None where they have none."""
    return op_class.get_trait(trait)
