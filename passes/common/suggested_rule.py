"""Suggested sharding rules for operations that have none, such as kernels."""

from collections.abc import Iterable, Sequence
from itertools import count
from string import ascii_lowercase

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation

from sdy.ir.shapes import is_static_tensor, shape
from sdy.rules.call_targets import WITHOUT_RULE
from sdy.stablehlo.custom_call import CustomCallOp

_ADVICE = "{how}, and remove {removed} the dimensions that can be sharded (dimensions of equal size share a name)"


def suggest_rule(op: Operation, operands: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
    """Return a line of code that registers a sharding rule for an operation, and how to edit it.

    The rule replicates every dimension; the user removes those that can be sharded from the braces. A kernel gets an
    annotation of the function that calls it; other custom calls and unregistered operations get a rule.

    Args:
        op: An operation without a sharding rule.
        operands: The types of the unpartitioned operands.
        results: The types of the unpartitioned results.

    Returns:
        The suggestion, None if `op` cannot have a rule.
    """
    if not isinstance(op, CustomCallOp | UnregisteredOp) or not all(map(is_static_tensor, (*operands, *results))):
        return None
    operand_shapes, result_shapes = ([shape(type_) for type_ in types] for types in (operands, results))
    if isinstance(op, CustomCallOp) and op.call_target_name.data in WITHOUT_RULE:
        return suggest_operator(operand_shapes, result_shapes)
    names = _names([*operand_shapes, *result_shapes])
    before, after = names[: len(operand_shapes)], names[len(operand_shapes) :]
    replicated = "{" + ", ".join(dict.fromkeys(name for tensor in names for name in tensor)) + "}"
    annotation = (
        f"{_tensors(before)} -> {_tensors(after)} need_replication={replicated} blocked_propagation={replicated}"
    )
    if isinstance(op, CustomCallOp):
        target = op.call_target_name.data
        how = (
            f"write `{target}: {annotation}` in a file for --custom-call-rules, "
            f'or pass it to sdy.rules.annotate("@{target}", ...)'
        )
    else:
        how = f'write sdy.rules.annotate("{op.op_name.data}", "{annotation}")'
    return _ADVICE.format(how=how, removed="from the braces")


def suggest_operator(operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> str:
    """Return the suggestion for a kernel with operands and results of these shapes."""
    names = _names([*operands, *results])
    before, after = _operator(names[: len(operands)]), _operator(names[len(operands) :])
    how = f'write @sdy.register_op("{before} -> {after}") above the function that calls it'
    return _ADVICE.format(how=how, removed="the ^ of")


def _names(shapes: Iterable[Sequence[int]]) -> list[list[str]]:
    """Name the dimensions of tensors: the n-th dimensions of a size in each tensor share a name."""
    letters = (f"{letter}{number or ''}" for number in count() for letter in ascii_lowercase)
    known: dict[tuple[int, int], str] = {}
    names: list[list[str]] = []
    for sizes in shapes:
        keys = [(size, sizes[:dim].count(size)) for dim, size in enumerate(sizes)]
        names.append([known.get(key) or known.setdefault(key, next(letters)) for key in keys])
    return names


def _tensors(names: Iterable[Sequence[str]]) -> str:
    return ", ".join(map(" ".join, names))


def _operator(names: Iterable[Sequence[str]]) -> str:
    """Format tensors in the notation of operators, where a scalar is `1`."""
    return _tensors([f"{name}^" for name in tensor] or ["1"] for tensor in names)
