"""Copying and pickling of results that refer to programs."""

from typing import Any, NoReturn, Self


class Immutable:
    """Mixin of immutable objects: a copy is the object, with what its pickle leaves out."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class OfThisProcess(Immutable):
    """Mixin of programs, which cannot be pickled: they refer to devices and to Python functions."""

    def __reduce__(self) -> NoReturn:
        text = "a program is pickled as text, sdy.format(module), which sdy.parse reads"
        raise TypeError(f"cannot pickle '{type(self).__name__}' object: {text}")
