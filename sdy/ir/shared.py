"""Attributes that hold a plain value, and of which equal values share one."""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Self, TypeVar

from xdsl.ir import Data

ValueT = TypeVar("ValueT", bound=Hashable, covariant=True)


class SharedData(Data[ValueT]):
    """An attribute around `data`, a value that can be hashed."""

    @classmethod
    @lru_cache(maxsize=2**14)
    def of(cls, value: Any) -> Self:
        """The attribute that holds `value`: the one there is, so that operations share what they repeat."""
        return cls(value)
