"""A tensor by its name, and what is known of its numbers: how large, how fine, and how far rounding may take them."""

from dataclasses import dataclass, replace

Shape = tuple[int, ...]

INTEGERS = ("i32", "i8", "ui8", "i16", "i64")
REALS = ("f32", "bf16")
COMPLEX = "complex<f32>"
ELEMENTS = (*INTEGERS, "i1", *REALS, COMPLEX)

_PRECISION = {"f32": 24, "bf16": 8, COMPLEX: 24}
"""Bits of a number that is not rounded."""


@dataclass(frozen=True)
class Numbers:
    """What is known of the numbers of a tensor that are finite, and whether all are.

    None is larger than `largest`, each is a multiple of `grain`, but for an `error` that depends on the order in which
    it was computed; `given` are those of which every bit is that of an argument or a constant, the sign of a zero too.
    """

    largest: float
    grain: float
    error: float = 0.0
    given: bool = False
    finite: bool = True

    @property
    def exact(self) -> bool:
        """Whether they do not depend on the order in which they were computed."""
        return not self.error

    def within(self, other: "Numbers") -> bool:
        """Whether what is known of `other` holds for these as well."""
        return (
            self.largest <= other.largest
            and self.grain >= other.grain
            and self.error <= other.error
            and self.given >= other.given
            and self.finite >= other.finite
        )

    def or_(self, *others: "Numbers") -> "Numbers":
        """What holds for these and for the others."""
        each = (self, *others)
        return Numbers(
            max(one.largest for one in each),
            min(one.grain for one in each),
            max(one.error for one in each),
            all(one.given for one in each),
            all(one.finite for one in each),
        )

    def computed(self) -> "Numbers":
        """The same numbers, of which the bits may be others."""
        return replace(self, given=False)

    def rounded(self, element: str, steps: int = 1) -> "Numbers":
        """These in so many steps, each of which is rounded unless it is exact."""
        precision = _PRECISION.get(element)
        if precision is None or (self.exact and self.grain and self.largest / self.grain <= 2**precision):
            return self.computed()
        error = self.error + 4 * steps * self.largest * 2.0**-precision
        return replace(self, grain=0.0, error=error, given=False)

    def times(self, count: int, element: str) -> "Numbers":
        """Sums of so many."""
        most = max(count, 1)
        return replace(self, largest=most * self.largest, error=most * self.error).rounded(element, most)


WHOLE = Numbers(0.0, 1.0, 0.0, given=True)
"""Integers and booleans, which are never rounded."""


@dataclass(frozen=True)
class Value:
    """A tensor by its name."""

    name: str
    shape: Shape
    element: str
    numbers: Numbers = WHOLE

    @property
    def type(self) -> str:
        """Its type as text."""
        return type_text(self.shape, self.element)

    @property
    def rank(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def is_integer(self) -> bool:
        """Whether its elements are integers, and not booleans."""
        return self.element in INTEGERS

    @property
    def is_whole(self) -> bool:
        """Whether its elements are integers or booleans."""
        return self.is_integer or self.element == "i1"

    @property
    def is_real(self) -> bool:
        """Whether its elements are real numbers in floating point."""
        return self.element in REALS


def type_text(shape: Shape, element: str) -> str:
    """A tensor type as text."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def bits(element: str) -> int:
    """The width of an element that is no boolean."""
    return 64 if element == COMPLEX else int("".join(each for each in element if each.isdigit()))
