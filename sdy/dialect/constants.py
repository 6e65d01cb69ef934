"""Values of constants: of `ConstantLike` operations of any dialect, and of `sdy.constant`, which is never folded."""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import ConstantLike
from xdsl.utils.hints import isa

from sdy.dialect.ops import ConstantOp
from sdy.ir.elements import splat
from sdy.ir.fast_access import has_trait


def is_constant(value: SSAValue) -> bool:
    """Return whether a constant defines `value`."""
    owner = value.owner
    return isinstance(owner, Operation) and (isinstance(owner, ConstantOp) or has_trait(owner, ConstantLike))


def constant_value(value: SSAValue) -> Attribute | None:
    """Return the attribute of the constant that defines `value`: elements or a number; None without one."""
    if isinstance(value.owner, ConstantOp):
        return value.owner.value
    return ConstantLike.get_constant_value(value)


def constant_elements(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """Return the elements of a constant tensor; None if no constant defines it, or if it refers to a resource."""
    constant = constant_value(value)
    return constant if isa(constant, DenseIntOrFPElementsAttr) else None


def constant_number(value: SSAValue) -> int | float | None:
    """Return the value of a splat constant; None if `value` is not a splat constant."""
    constant = constant_value(value)
    return None if constant is None else splat_number(constant)


def splat_number(constant: Attribute) -> int | float | None:
    """Return the number that all elements of a constant are; None if they differ, or are complex."""
    elements = splat(constant)
    number = None if elements is None else next(iter(elements.iter_values()))
    return number if isinstance(number, int | float) else None
