"""What the MLIR of each version of jaxlib prints in its own way: the one table of the differences.

What any of them prints is read, whichever is installed. Where no version is asked for, a module is printed as the
installed one prints it, which reads that text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i32
from xdsl.ir import Attribute

from sdy.extras import installed_version

Version = tuple[int, int]
"""The first two numbers of a version of jaxlib: of 0.12.0.1, 0 and 12."""


@dataclass(frozen=True)
class Forms:
    """How one version prints what others print differently."""

    unknown_properties: Mapping[str, tuple[str, Attribute]]
    """Of operations: a property that they did not have yet, and the value that went without saying."""

    lists_properties_last: bool
    """Whether a function's properties stand behind its other attributes, `attributes {z, no_inline}`, or among them."""

    sets_properties_apart: bool
    """Whether properties that an operation's own form has no words for are printed in angle brackets,
    `call @f() <no_inline> {a}`, or among the attributes, `call @f() {a, no_inline}`."""


_SUM = ("reduction_op", IntegerAttr(0, i32))
_NO_TILINGS = ("result_tilings", ArrayAttr[Attribute](()))

FORMS: dict[Version, Forms] = {
    (0, 10): Forms(
        {"sdy.all_reduce": _SUM, "sdy.reduce_scatter": _SUM, "stablehlo.custom_call": _NO_TILINGS},
        lists_properties_last=False,
        sets_properties_apart=False,
    ),
    (0, 11): Forms({}, lists_properties_last=True, sets_properties_apart=False),
    (0, 12): Forms({}, lists_properties_last=True, sets_properties_apart=True),
}


def forms_of(jaxlib: str) -> Forms:
    """How a version of jaxlib prints, `"0.11"` or `"0.11.2"`. Raises ValueError for one that is not in the table."""
    forms = FORMS.get(_version(jaxlib))
    if forms is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in FORMS)
        raise ValueError(f"how jaxlib {jaxlib!r} prints is not known; it is of {known}")
    return forms


@cache
def installed_forms() -> Forms:
    """How the installed jaxlib prints, or the version in the table that is nearest to it; without any, the newest."""
    oldest, newest = min(FORMS), max(FORMS)
    installed = installed_version("jaxlib")
    return FORMS[newest if installed is None else max(oldest, min(_version(installed), newest))]


def _version(text: str) -> Version:
    numbers = [int(number) for number in text.split(".")[:2] if number.isdecimal()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)
