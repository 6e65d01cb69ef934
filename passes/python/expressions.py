"""Python expressions, their parentheses, and the lines that `ruff format` would give a statement."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

WIDTH = 88
"""The length of a line."""

_INDENT = "    "


class Precedence(IntEnum):
    """Precedence of an expression. An operand is in parentheses if it has a lower one than its operator."""

    COMPARISON = 1
    OR = 2
    XOR = 3
    AND = 4
    SHIFT = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    ATOM = 9


@dataclass(frozen=True)
class Expression:
    """A Python expression: its text, and the parts between which it may be broken into lines.

    An expression that ends with a bracket has a `head` up to the opening bracket, `items` in it, and a `tail`. Lists
    and tuples are `spread`: when broken, each item has its own line.
    """

    text: str
    precedence: Precedence = Precedence.ATOM
    head: str = ""
    items: "tuple[Expression, ...]" = ()
    tail: str = ""
    spread: bool = False

    def __str__(self) -> str:
        return self.text

    def within(self, precedence: Precedence) -> str:
        """Return the text as an operand of an operator that binds with `precedence`."""
        return self.text if self.precedence >= precedence else f"({self.text})"


Item = Expression | str


def atom(item: Item) -> Expression:
    """Return an expression for `item`; text is an atom, such as a name."""
    return item if isinstance(item, Expression) else Expression(item)


def bracketed(head: str, items: Iterable[Item], tail: str, *, spread: bool = False) -> Expression:
    """Return `head`, then `items` with commas between them, then `tail`."""
    parts = tuple(map(atom, items))
    return Expression(head + ", ".join(part.text for part in parts) + tail, Precedence.ATOM, head, parts, tail, spread)


def call(function: str, *arguments: Item, **keywords: Item) -> Expression:
    """Return the call of `function`, a name or a path of names."""
    named = (keyword(name, value) for name, value in keywords.items())
    return bracketed(f"{function}(", (*arguments, *named), ")")


def method(value: Expression, name: str, *arguments: Item, **keywords: Item) -> Expression:
    """Return the call of a method of `value`."""
    return call(f"{value.within(Precedence.ATOM)}.{name}", *arguments, **keywords)


def attribute(value: Expression, name: str) -> Expression:
    """Return an attribute of `value`."""
    return Expression(f"{value.within(Precedence.ATOM)}.{name}")


def keyword(name: str, value: Item) -> Expression:
    """Return the argument `name=value` of a call."""
    value = atom(value)
    return replace(value, text=f"{name}={value.text}", head=f"{name}={value.head}")


def list_of(items: Iterable[Item]) -> Expression:
    """Return a list."""
    return bracketed("[", items, "]", spread=True)


def tuple_of(items: Iterable[Item]) -> Expression:
    """Return a tuple."""
    items = [*items]
    return bracketed("(", items, ",)" if len(items) == 1 else ")", spread=True)


def sizes(values: Iterable[int]) -> Expression:
    """Return a tuple of integers."""
    return tuple_of(map(str, values))


def index(value: Expression, *entries: Item) -> Expression:
    """Return `value[entries]`."""
    return bracketed(f"{value.within(Precedence.ATOM)}[", entries, "]")


def binary(lhs: Expression, operator: str, rhs: Expression, precedence: Precedence) -> Expression:
    """Return `lhs operator rhs` of a left-associative operator; comparisons are not chained."""
    left = Precedence(precedence + 1) if precedence is Precedence.COMPARISON else precedence
    right = Precedence(precedence + 1)
    text = f"{lhs.within(left)} {operator} {rhs.within(right)}"
    if lhs.precedence is precedence or rhs.precedence < right or rhs.tail != ")" or not rhs.items:
        return Expression(text, precedence)
    # The only operator of its precedence: a long expression is broken in the brackets at its end.
    return replace(rhs, text=text, precedence=precedence, head=f"{lhs.within(left)} {operator} {rhs.head}")


def unary(operator: str, operand: Expression) -> Expression:
    """Return `-operand` or `~operand`."""
    return Expression(f"{operator}{operand.within(Precedence.SIGN)}", Precedence.SIGN)


def statement(prefix: str, value: Expression, depth: int, suffix: str = "") -> Iterator[str]:
    """Yield the lines of `prefix value suffix`, indented by `depth` levels, broken as `ruff format` breaks them."""
    indent = _INDENT * depth
    if len(f"{indent}{prefix}{value.text}{suffix}") <= WIDTH:
        yield f"{indent}{prefix}{value.text}{suffix}"
    elif value.items and len(f"{indent}{prefix}{value.head}") <= WIDTH:
        yield f"{indent}{prefix}{value.head}"
        yield from _items(value, depth + 1)
        yield f"{indent}{value.tail.removeprefix(',')}{suffix}"
    elif prefix:
        yield f"{indent}{prefix}("
        yield from statement("", value, depth + 1)
        yield f"{indent}){suffix}"
    else:
        yield f"{indent}{value.text}{suffix}"


def assignment(targets: Sequence[str], value: Expression, depth: int) -> Iterator[str]:
    """Yield the lines of the assignment of `value` to `targets`; of several, each has its own line if they are long."""
    text = ", ".join(targets)
    if len(targets) == 1 or len(f"{_INDENT * depth}{text} = (") <= WIDTH:
        yield from statement(f"{text} = ", value, depth)
        return
    yield f"{_INDENT * depth}("
    for target in targets:
        yield f"{_INDENT * (depth + 1)}{target},"
    yield from statement(") = ", value, depth)


def definition(name: str, parameters: Sequence[str]) -> Iterator[str]:
    """Yield the first lines of a function."""
    head = Expression(f"({', '.join(parameters)})", head="(", items=tuple(map(Expression, parameters)), tail=")")
    return statement(f"def {name}", head, 0, ":")


def _items(value: Expression, depth: int) -> Iterator[str]:
    """Yield the lines between the brackets of an expression."""
    inner = _INDENT * depth + ", ".join(item.text for item in value.items)
    if not value.spread and len(inner) <= WIDTH:
        yield inner
    else:
        for item in value.items:
            yield from statement("", item, depth, ",")
