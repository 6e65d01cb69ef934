"""Values that constants define: those of any dialect that may be folded, and `sdy.constant`, which may not."""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import ConstantLike
from xdsl.utils.hints import isa

from sdy.dialect.ops import ConstantOp
from sdy.ir.elements import splat
from sdy.ir.traits import has_trait


def is_constant(value: SSAValue) -> bool:
    """Whether a constant defines `value`."""
    owner = value.owner
    return isinstance(owner, Operation) and (isinstance(owner, ConstantOp) or has_trait(owner, ConstantLike))


def constant_value(value: SSAValue) -> Attribute | None:
    """What a constant says that `value` is: elements, or a number; None where no constant defines it."""
    if isinstance(value.owner, ConstantOp):
        return value.owner.value
    return ConstantLike.get_constant_value(value)


def constant_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """The elements that a constant gives a tensor, None where none does, or keeps them apart from the text."""
    constant = constant_value(value)
    return constant if isa(constant, DenseIntOrFPElementsAttr) else None


def constant_number(value: SSAValue) -> int | float | None:
    """The number that a constant says all elements of a tensor are, None where it gives none or several."""
    constant = constant_value(value)
    elements = None if constant is None else splat(constant)
    number = None if elements is None else next(iter(elements.iter_values()))
    return number if isinstance(number, int | float) else None
