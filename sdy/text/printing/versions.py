"""The differences in syntax between the MLIR of each version of jaxlib.

The parser accepts all of them. By default a module is printed in the syntax of the installed version, which can then
parse it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i32
from xdsl.ir import Attribute

from sdy.extras import installed_version

Version = tuple[int, int]
"""The first two numbers of a version of jaxlib: (0, 12) of 0.12.0.1."""


@dataclass(frozen=True)
class Syntax:
    """The syntax of one version, where versions differ."""

    unknown_properties: Mapping[str, tuple[str, Attribute]]
    """By operation: a property that the version lacks, and the property's default value."""

    prints_properties_last: bool
    """True if a function's properties are printed last, `attributes {z, no_inline}`; false if among its attributes."""

    prints_properties_in_brackets: bool
    """True if properties outside the assembly format are printed in angle brackets, `call @f() <no_inline> {a}`;
    false if among the attributes, `call @f() {a, no_inline}`."""


_SUM = ("reduction_op", IntegerAttr(0, i32))
_NO_TILINGS = ("result_tilings", ArrayAttr[Attribute](()))

SYNTAX: dict[Version, Syntax] = {
    (0, 10): Syntax(
        {"sdy.all_reduce": _SUM, "sdy.reduce_scatter": _SUM, "stablehlo.custom_call": _NO_TILINGS},
        prints_properties_last=False,
        prints_properties_in_brackets=False,
    ),
    (0, 11): Syntax({}, prints_properties_last=True, prints_properties_in_brackets=False),
    (0, 12): Syntax({}, prints_properties_last=True, prints_properties_in_brackets=True),
}


def syntax_of(jaxlib: str) -> Syntax:
    """Return the syntax of a version of jaxlib, `"0.11"` or `"0.11.2"`. Raises ValueError if it is unknown."""
    syntax = SYNTAX.get(_version(jaxlib))
    if syntax is None:
        known = ", ".join(f"{major}.{minor}" for major, minor in SYNTAX)
        raise ValueError(f"the syntax of jaxlib {jaxlib!r} is unknown; known versions: {known}")
    return syntax


@cache
def installed_syntax() -> Syntax:
    """Return the syntax of the installed jaxlib or of the nearest known version; without jaxlib, of the newest."""
    oldest, newest = min(SYNTAX), max(SYNTAX)
    installed = installed_version("jaxlib")
    return SYNTAX[newest if installed is None else max(oldest, min(_version(installed), newest))]


def _version(text: str) -> Version:
    numbers = [int(number) for number in text.split(".")[:2] if number.isdecimal()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)
