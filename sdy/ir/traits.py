"""Traits of operations, cached by class, since passes look them up for every operation."""

from functools import cache
from typing import Any, TypeVar, cast

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, OpTrait

TraitT = TypeVar("TraitT", bound=OpTrait)


def trait_of(op: Operation, trait: type[TraitT]) -> TraitT | None:
    """Return the trait of this class that `op` has; None if it has none or is unregistered."""
    return cast("TraitT | None", trait_of_class(op.__class__, trait))


def has_trait(op: Operation, trait: type[OpTrait]) -> bool:
    """Return whether `op` is registered and has a trait of this class."""
    return trait_of_class(op.__class__, trait) is not None


def is_terminator(op: Operation) -> bool:
    """Return whether `op` is a block terminator."""
    return trait_of_class(op.__class__, IsTerminator) is not None


@cache
def trait_of_class(op_class: type[Operation], trait: type[OpTrait]) -> Any:
    """Return the trait of this class that operations of class `op_class` have, or None."""
    return op_class.get_trait(trait)
