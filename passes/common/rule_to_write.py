"""What a person can write so that an operation without a sharding rule, such as a kernel, is computed in parts."""

from collections.abc import Iterable, Sequence
from itertools import count
from string import ascii_lowercase

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation

from sdy.ir.shapes import is_static_tensor, shape
from sdy.rules.call_targets import WITHOUT_RULE
from sdy.stablehlo.custom_call import CustomCallOp

_ADVICE = "{how}, and leave out {whole} the dimensions that may be split (equal sizes have one name here)"


def rule_to_write(op: Operation, operands: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
    """The line that gives `op`, whose operands and results are of these types as a whole, a rule by which nothing is
    split, and what to leave out of it; None for an operation that no line helps.

    A kernel is annotated in the function that calls it. Others are custom calls of a target, or operations of a dialect
    that is not known.
    """
    if not isinstance(op, CustomCallOp | UnregisteredOp) or not all(map(is_static_tensor, (*operands, *results))):
        return None
    given, made = ([shape(type_) for type_ in types] for types in (operands, results))
    if isinstance(op, CustomCallOp) and op.call_target_name.data in WITHOUT_RULE:
        return operator_to_write(given, made)
    names = _names([*given, *made])
    before, after = names[: len(given)], names[len(given) :]
    whole = "{" + ", ".join(dict.fromkeys(name for tensor in names for name in tensor)) + "}"
    annotation = f"{_tensors(before)} -> {_tensors(after)} need_replication={whole} blocked_propagation={whole}"
    if isinstance(op, CustomCallOp):
        target = op.call_target_name.data
        how = (
            f"write `{target}: {annotation}` in a file for --custom-call-rules, "
            f'or give the same to sdy.rules.annotate("@{target}", ...)'
        )
    else:
        how = f'write sdy.rules.annotate("{op.op_name.data}", "{annotation}")'
    return _ADVICE.format(how=how, whole="of the braces")


def operator_to_write(operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> str:
    """As `rule_to_write`, of a kernel that takes and gives tensors of these shapes."""
    names = _names([*operands, *results])
    before, after = _operator(names[: len(operands)]), _operator(names[len(operands) :])
    how = f'write @sdy.register_op("{before} -> {after}") above the function that calls it'
    return _ADVICE.format(how=how, whole="the ^ of")


def _names(shapes: Iterable[Sequence[int]]) -> list[list[str]]:
    """A name for each dimension of tensors: of those of one size, the first of each tensor have one, and so on."""
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
    """The same in the notation of operators, where a scalar is `1`."""
    return _tensors([f"{name}^" for name in tensor] or ["1"] for tensor in names)
