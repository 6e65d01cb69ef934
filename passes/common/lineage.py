"""Which value stood where a value stands now, for those who ask where it comes from.

A pass that makes one operation of another says so here; it is forgotten with the new value.
"""

from weakref import WeakKeyDictionary

from xdsl.ir import Operation, SSAValue

_PREDECESSORS: WeakKeyDictionary[SSAValue, SSAValue] = WeakKeyDictionary()


def succeed(new: Operation, old: Operation) -> None:
    """The results of `new` take the places of those of `old`."""
    _PREDECESSORS.update(zip(new.results, old.results, strict=True))


def predecessor(value: SSAValue) -> SSAValue | None:
    """The value that stood where `value` stands now, None if it always did."""
    return _PREDECESSORS.get(value)
