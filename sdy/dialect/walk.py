"""All operations in an operation, quickly.

Most passes look at every operation of a module for the few that concern them, and finding them is most of what such a
pass costs. A list takes half the time of `Operation.walk`, which resumes a generator for each region around each
operation; it stays as it is while the module is edited; and the operations may be nested as deeply as they like.
"""

from collections.abc import Iterator
from functools import cache
from typing import TypeVar, cast

from xdsl.ir import Operation

OperationT = TypeVar("OperationT", bound=Operation)


def operations(root: Operation) -> list[Operation]:
    """`root` and the operations in it, in the order of the text: each before what is in it."""
    return [*each_operation(root)]


def each_operation(root: Operation) -> Iterator[Operation]:
    """As `operations`, one after the other, for those who look at each once while nothing is moved.

    To come back to an operation later is to fetch it from memory a second time.
    """
    yield root
    pending = _first_operations(root)
    while pending:
        op = pending.pop()
        while op is not None:
            yield op
            if op.regions:
                pending.append(op.next_op)
                pending += _first_operations(op)
                break
            # `next_op` is a call, which costs as much as all else here.
            op = op._next_op  # pyright: ignore[reportPrivateUsage]


def operations_inside_out(root: Operation) -> list[Operation]:
    """The operations in `root`, and `root`: each after what is in it."""
    found = [root]
    pending = [block.last_op for region in root.regions for block in region.blocks]
    while pending:
        op = pending.pop()
        while op is not None:
            found.append(op)
            if op.regions:
                pending.append(op.prev_op)
                pending += [block.last_op for region in op.regions for block in region.blocks]
                break
            op = op.prev_op
    found.reverse()
    return found


def operations_of(root: Operation, *classes: type[OperationT]) -> list[OperationT]:
    """The operations of these classes in `root`, itself included, in the order of the text."""
    return [cast(OperationT, op) for op in operations(root) if _is_one_of(op.__class__, classes)]


@cache
def _is_one_of(op_class: type[Operation], classes: tuple[type[Operation], ...]) -> bool:
    # Operations' classes are abstract ones, with which issubclass and isinstance are slow to say no.
    return issubclass(op_class, classes)


def _first_operations(op: Operation) -> list[Operation | None]:
    """The first operation of each block of `op`, those of the last block first."""
    return [block.first_op for region in op.regions for block in region.blocks][::-1]
