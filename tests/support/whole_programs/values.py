"""A tensor by its name, with bounds on its elements: magnitude, granularity and rounding error."""

from dataclasses import dataclass, replace

Shape = tuple[int, ...]

INTEGERS = ("i32", "i8", "ui8", "i16", "i64")
REALS = ("f32", "bf16")
COMPLEX = "complex<f32>"
ELEMENTS = (*INTEGERS, "i1", *REALS, COMPLEX)

_PRECISION = {"f32": 24, "bf16": 8, COMPLEX: 24}
"""Significand bits of each floating-point type."""


@dataclass(frozen=True)
class Numbers:
    """Bounds on the finite elements of a tensor.

    Elements are at most `largest` in magnitude and multiples of `grain`, up to an `error` that depends on the order of
    computation. `given` means that every bit comes from an argument or a constant, including the sign of zeros;
    `finite`, that no element is infinite or NaN.
    """

    largest: float
    grain: float
    error: float = 0.0
    given: bool = False
    finite: bool = True

    @property
    def exact(self) -> bool:
        """True if the elements do not depend on the order of computation."""
        return not self.error

    def within(self, other: "Numbers") -> bool:
        """Return whether the bounds of `other` also hold for these elements."""
        return (
            self.largest <= other.largest
            and self.grain >= other.grain
            and self.error <= other.error
            and self.given >= other.given
            and self.finite >= other.finite
        )

    def or_(self, *others: "Numbers") -> "Numbers":
        """Return the bounds on the union of these elements and others."""
        each = (self, *others)
        return Numbers(
            max(one.largest for one in each),
            min(one.grain for one in each),
            max(one.error for one in each),
            all(one.given for one in each),
            all(one.finite for one in each),
        )

    def computed(self) -> "Numbers":
        """Return the same bounds for elements whose bits are not an argument's."""
        return replace(self, given=False)

    def rounded(self, element: str, steps: int = 1) -> "Numbers":
        """Return the bounds after `steps` operations that each round, unless all are exact."""
        precision = _PRECISION.get(element)
        if precision is None or (self.exact and self.grain and self.largest / self.grain <= 2**precision):
            return self.computed()
        error = self.error + 4 * steps * self.largest * 2.0**-precision
        return replace(self, grain=0.0, error=error, given=False)

    def times(self, count: int, element: str) -> "Numbers":
        """Return the bounds on sums of `count` elements."""
        most = max(count, 1)
        return replace(self, largest=most * self.largest, error=most * self.error).rounded(element, most)


WHOLE = Numbers(0.0, 1.0, 0.0, given=True)
"""Bounds of integers and booleans, which are never rounded."""


@dataclass(frozen=True)
class Value:
    """A tensor by its name."""

    name: str
    shape: Shape
    element: str
    numbers: Numbers = WHOLE

    @property
    def type(self) -> str:
        """The tensor type as text."""
        return type_text(self.shape, self.element)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_integer(self) -> bool:
        """True if the elements are integers but not booleans."""
        return self.element in INTEGERS

    @property
    def is_whole(self) -> bool:
        """True if the elements are integers or booleans."""
        return self.is_integer or self.element == "i1"

    @property
    def is_real(self) -> bool:
        """True if the elements are real floating-point numbers."""
        return self.element in REALS


def type_text(shape: Shape, element: str) -> str:
    """Return a tensor type as text."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def bits(element: str) -> int:
    """Return the bit width of a non-boolean element type."""
    return 64 if element == COMPLEX else int("".join(each for each in element if each.isdigit()))
