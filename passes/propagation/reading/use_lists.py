"""The order of use lists, in which Shardy goes on from a value to what it matters to."""

from collections.abc import Container, Sequence

from xdsl.ir import Operation, SSAValue

from sdy.ir.fields import next_use, user_of


def put_in_order_of_use_lists(
    all_readers: Sequence[list[int]],
    values: Sequence[SSAValue | None],
    tensors: Sequence[Sequence[int]],
    operations: Sequence[Operation],
    ordered_elsewhere: Container[int],
) -> None:
    """Put the readers of each node, which are in the order of the text, in that of the use list of its value.

    What defines the value comes before its users. What changes a node is the visit of one of its readers, so that the
    order of the others only matters from three readers on. `tensors` are as in `Snapshot`.

    Written to be fast: the uses of a large module lie all over memory, so that few of them are looked at.
    """
    for node, readers in enumerate(all_readers):
        if len(readers) < 3 or node in ordered_elsewhere or (value := values[node]) is None:
            continue
        has_definer = tensors[readers[0]][-1] == node
        use = value.first_use
        if has_definer and len(readers) == 3:
            # As below, in half the time; most nodes are so.
            _, user, last = readers
            if use is not None and user_of(use) is operations[last]:
                readers[1:] = last, user
                continue
        # The users are in reverse in nearly all use lists; the last one is if the others are.
        in_reverse = readers[:0:-1] if has_definer else readers[::-1]
        for number in in_reverse[:-1]:
            if use is None or user_of(use) is not operations[number]:
                in_reverse = _in_order_of_use_list(value, in_reverse, operations)
                break
            use = next_use(use)
        readers[has_definer:] = in_reverse


def _in_order_of_use_list(value: SSAValue, users: Sequence[int], operations: Sequence[Operation]) -> list[int]:
    """`users`, each once, those that do not use `value` itself last; some of its uses may be of other operations."""
    pending = {id(operations[number]): number for number in users}
    ordered: list[int] = []
    use = value.first_use
    while use is not None and pending:
        number = pending.pop(id(use.operation), None)
        if number is not None:
            ordered.append(number)
        use = next_use(use)
    return [*ordered, *pending.values()]
