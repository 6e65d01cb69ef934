"""Interned attributes that hold a plain value."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Self, TypeVar

from xdsl.ir import Data

ValueT = TypeVar("ValueT", bound=Hashable, covariant=True)


class SharedData(Data[ValueT]):
    """An attribute that holds `data`, a hashable value."""

    @classmethod
    @lru_cache(maxsize=2**14)
    def of(cls, value: Any) -> Self:
        """Return the interned attribute for `value`, so that operations share repeated attributes."""
        return cls(value)
