"""Dependences between the kernels of a block: those that run before another one, whatever the order."""

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from sdy.passes.spmd.costs.kernels import Kernel


def inputs_of(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Return for each kernel the indices of those whose results it needs, or waits for because of a barrier."""
    number = {kernel.operation: index for index, kernel in enumerate(kernels)}
    return [_inputs(kernel, number) for kernel in kernels]


def _inputs(kernel: Kernel, number: dict[Operation, int]) -> list[int]:
    owners = [value.owner for value in (*kernel.reads, *kernel.follows)]
    return [*dict.fromkeys(number[owner] for owner in owners if isinstance(owner, Operation) and owner in number)]


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

    def follows_all(self, index: int, others: Iterable[int]) -> bool:
        """Return whether a kernel depends on all of `others`, which are selected."""
        bits = self._bits(others)
        return not bits or self._before[index] & bits == bits

    def follows_any(self, index: int, others: Iterable[int]) -> bool:
        """Return whether a kernel depends on one of `others`, which are selected."""
        bits = self._bits(others)
        return bits != 0 and self._before[index] & bits != 0

    def merge(self, together: Sequence[int]) -> None:
        """Let the selected kernels that depend on one of `together` depend on all, and on all that these depend on."""
        bits = self._bits(together)
        merged = bits | _union(self._before[index] for index in together)
        for index, bit in self._bit.items():
            if bit & bits:
                self._before[index] = merged & ~bits
            elif self._before[index] & bits:
                self._before[index] |= merged

    def _bits(self, selected: Iterable[int]) -> int:
        return _union(self._bit[index] for index in selected)


def _union(sets: Iterable[int]) -> int:
    union = 0
    for each in sets:
        union |= each
    return union
