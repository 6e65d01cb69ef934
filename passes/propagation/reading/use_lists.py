"""Sort readers in the order of use lists, in which Shardy visits the users of a changed value."""

from collections.abc import Container, Sequence

from xdsl.ir import Operation, SSAValue

from sdy.ir.fast_access import next_use, user_of


def sort_by_use_lists(
    all_readers: Sequence[list[int]],
    values: Sequence[SSAValue | None],
    tensors: Sequence[Sequence[int]],
    operations: Sequence[Operation],
    ordered_elsewhere: Container[int],
) -> None:
    """Sort the readers of each node in place: the definer of its value first, then the users in use-list order.

    A node changes when one of its readers is visited, so the order of the others matters only for three readers or
    more.

    Optimized: the uses of a large module are scattered in memory, so the function looks at few of them.

    Args:
        all_readers: The readers of each node, in pre-order.
        values: The primary value of each node.
        tensors: The nodes of each operation's tensors.
        operations: The operations of the module.
        ordered_elsewhere: Nodes to skip.
    """
    for node, readers in enumerate(all_readers):
        if len(readers) < 3 or node in ordered_elsewhere or (value := values[node]) is None:
            continue
        has_definer = tensors[readers[0]][-1] == node
        use = value.first_use
        if has_definer and len(readers) == 3:
            # Special case of the code below, in half the time; most nodes are of this kind.
            _, user, last = readers
            if use is not None and user_of(use) is operations[last]:
                readers[1:] = last, user
                continue
        # Nearly all use lists are in reverse order; if all users but the last match, the last one does too.
        users = readers[:0:-1] if has_definer else readers[::-1]
        for number in users[:-1]:
            if use is None or user_of(use) is not operations[number]:
                users = _sort_by_use_list(value, users, operations)
                break
            use = next_use(use)
        readers[has_definer:] = users


def _sort_by_use_list(value: SSAValue, users: Sequence[int], operations: Sequence[Operation]) -> list[int]:
    """Sort `users` by the use list of `value`; users of other values of its node come last."""
    pending = {id(operations[number]): number for number in users}
    ordered: list[int] = []
    use = value.first_use
    while use is not None and pending:
        number = pending.pop(id(use.operation), None)
        if number is not None:
            ordered.append(number)
        use = next_use(use)
    return [*ordered, *pending.values()]
