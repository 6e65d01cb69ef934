"""Dependences between the kernels of a block: those that run before another one, whatever the order."""

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Block, Operation

from sdy.passes.spmd.costs.kernels import Copy, Kernel

_Source = Operation | Block | Copy
"""The source of a value that a kernel reads."""


def inputs_of(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Return for each kernel the indices of those whose results it needs, or waits for because of a barrier."""
    number: dict[_Source, int] = {kernel.makes or kernel.operation: index for index, kernel in enumerate(kernels)}
    return [_inputs(kernel, number) for kernel in kernels]


def _inputs(kernel: Kernel, number: Mapping[_Source, int]) -> list[int]:
    sources = (*kernel.copies, *(value.owner for value in (*kernel.reads, *kernel.follows)))
    return [*dict.fromkeys([number[each] for each in sources if each in number])]


def users_of_kernels(inputs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for each kernel the indices of those that need it, given the indices of those that each one needs."""
    users: list[list[int]] = [[] for _ in inputs]
    for index, each in enumerate(inputs):
        for other in each:
            users[other].append(index)
    return users


class Dependences:
    """The kernels of a selection that each kernel of a block depends on, as sets of bits.

    Args:
        selected: The indices of the selected kernels.
        inputs: For each kernel of the block, the indices of the earlier ones that it depends on.
    """

    def __init__(self, selected: Iterable[int], inputs: Sequence[Sequence[int]]) -> None:
        self._bit = {index: 1 << number for number, index in enumerate(selected)}
        self._before: list[int] = []
        for each in inputs if self._bit else ():
            self._before.append(_union(self._before[other] | self._bit.get(other, 0) for other in each))

    def bits(self, selected: Iterable[int]) -> int:
        """Return the set of bits of some selected kernels."""
        return _union(self._bit[index] for index in selected)

    def before(self, index: int) -> int:
        """Return the set of bits of the selected kernels that a kernel depends on."""
        return self._before[index]

    def follows_all(self, index: int, others: int) -> bool:
        """Return whether a kernel depends on all of `others`, a set of bits."""
        return not others or self._before[index] & others == others

    def follows_any(self, index: int, others: int) -> bool:
        """Return whether a kernel depends on one of `others`, a set of bits."""
        return others != 0 and self._before[index] & others != 0

    def merge(self, together: Sequence[int]) -> None:
        """Let the selected kernels that depend on one of `together` depend on all, and on all that these depend on."""
        bits = self.bits(together)
        merged = bits | _union(self._before[index] for index in together)
        for index, bit in self._bit.items():
            if bit & bits:
                self._before[index] = merged & ~bits
            elif self._before[index] & bits:
                self._before[index] |= merged


def _union(sets: Iterable[int]) -> int:
    union = 0
    for each in sets:
        union |= each
    return union
