"""Range and uniqueness checks of dimension numbers."""

from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException


def verify_in_range(name: str, dim: int, last: int, last_name: str) -> None:
    """Raise VerifyException unless `dim` is in [0, last]; `last_name` is the text of `last` in the message."""
    if not 0 <= dim <= last:
        raise VerifyException(f"Expects {name} to be in range [0, {last_name}] i.e. [0, {last}]. got: {dim}.")


def verify_each_in_range(name: str, dims: Sequence[int], end: int, end_name: str) -> None:
    """Raise VerifyException unless all `dims` are in [0, end); `end_name` is the text of `end` in the message."""
    for dim in dims:
        if not 0 <= dim < end:
            raise VerifyException(
                f"Expects each element of {name} to be in range [0, {end_name}) i.e. [0, {end}). got: {dim}."
            )


def verify_distinct(name: str, dims: Sequence[int], other_name: str, others: Sequence[int]) -> None:
    """Raise VerifyException if a dimension occurs twice in the two lists together."""
    seen: set[int] = set()
    for dim in (*dims, *others):
        if dim in seen:
            raise VerifyException(f"has duplicated dimension from {name} and {other_name}: {dim}")
        seen.add(dim)
