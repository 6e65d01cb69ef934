"""Minimization of a failing program by its choices."""

from collections.abc import Callable, Iterator

from small_scope.choices import Choices


def replay(numbers: list[int]) -> Choices:
    """Replay `numbers` as choices, then choose the first option."""
    left = iter(numbers)
    return Choices(lambda count: next(left, 0) % count)


def shrunk(numbers: list[int], fails: Callable[[list[int]], bool], most: int = 400) -> list[int]:
    """Return smaller choices that still fail, after at most `most` attempts to drop some or to zero one."""
    attempts = 0
    is_smaller = True
    while is_smaller and attempts < most:
        is_smaller = False
        for candidate in _smaller(numbers):
            attempts += 1
            if fails(candidate):
                numbers, is_smaller = candidate, True
                break
            if attempts >= most:
                break
    return numbers


def _smaller(numbers: list[int]) -> Iterator[list[int]]:
    length = len(numbers)
    size = length // 2
    while size:
        for start in range(0, length, size):
            yield numbers[:start] + numbers[start + size :]
        size //= 2
    for place, number in enumerate(numbers):
        if number:
            yield [*numbers[:place], 0, *numbers[place + 1 :]]
