"""Fast read access to fields, traits and verifiers of xDSL's objects, without the enclosing property, view or check.

For loops over every operation or use of a program: `operands_of(op)` takes a fifth of the time of `op.operands`, which
builds a view at each access. Operands are changed through `op.operands` or `sdy.ir.editing`. Traits are
cached by class, since passes look them up for every operation.
"""

from collections.abc import Callable
from functools import cache
from inspect import getclosurevars
from operator import attrgetter
from typing import Any, TypeVar, cast

from xdsl.ir import Attribute, Operation, SSAValue, SSAValues, Use
from xdsl.traits import IsTerminator, OpTrait

operands_of: Callable[[Operation], SSAValues] = attrgetter("_operands")
"""Return the operands of an operation."""

type_of: Callable[[SSAValue], Attribute] = attrgetter("_type")
"""Return the type of a value."""

user_of: Callable[[Use], Operation] = attrgetter("_operation")
"""Return the operation of a use."""

next_use: Callable[[Use], Use | None] = attrgetter("_next_use")
"""Return the next use in the use list of a value; None after the last."""


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


def own_verifier(op_class: type[Operation]) -> Callable[[Operation], None]:
    """Return the `verify_` that a class is written with, without the checks of its definition that run before it.

    The decorator of xDSL replaces it by a function that runs both, whose variable `custom_verify` is the original.
    """
    verifier = op_class.verify_
    while (written := getclosurevars(verifier).nonlocals.get("custom_verify")) is not None:
        verifier = written
    return verifier


@cache
def trait_of_class(op_class: type[Operation], trait: type[OpTrait]) -> Any:
    """Return the trait of this class that operations of class `op_class` have, or None."""
    return op_class.get_trait(trait)
