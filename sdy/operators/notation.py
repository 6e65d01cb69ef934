"""Parser of operator annotations, in nnScaler's notation.

    m^ kd+, kd+ n -> m^ n        a matrix product that can be sharded along kd, with a sum, and along n
    (h t) k -> h t k             a reshape; h or t is the argument of that name, or follows from the size of the other
    * t -> a * t                 `*` stands for the same dimensions in all tensors
    a b, ? -> a, ?               `?` is a non-tensor
    1024 b -> b 2                a number is a size, and cannot be sharded

A dimension is an identifier with an optional suffix. Without a suffix, it can be sharded in all tensors that have it;
with `+`, the outputs that lack it are then partial sums; with `^`, it cannot be sharded.

    annotation = parse_operator("m^ kd+, kd+ n -> m^ n")
"""

import re
from functools import lru_cache
from typing import Any

from lark import Token, Transformer
from lark.exceptions import VisitError

from sdy.operators.annotation import EXPANDS, Dim, Identifier, OperatorAnnotation, Reduction, Tensor
from sdy.rules.annotated_factors import AnnotationError
from sdy.rules.notation import Notation

_GRAMMAR = r"""
    annotation: values _ARROW values
    values: (value ("," value)*)?
    value: NOTHING | dim+
    dim: IDENTIFIER | EXPANDS | "(" IDENTIFIER+ ")"

    _ARROW: "->"
    NOTHING: "?"
    EXPANDS: /\*[+^]?/
    IDENTIFIER: /([^\W\d]\w*|\d+)[+^]?/

    %import common.WS
    %ignore WS
"""

_JOINED = re.compile(r"(?<!\w)(\d+[+^]|\d+(?!\d)|[^\W\d]\w*[+^])([\w*]+)")
"""Two identifiers without a space between them, for example `1m` or `a+b`."""

_WORDS = {
    "_ARROW": "`->`",
    "COMMA": "`,`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "NOTHING": "`?`",
    "EXPANDS": "`*`",
    "IDENTIFIER": "an identifier, as `n`, `n+`, `n^` or a number",
    "$END": "the end",
}

MISTAKES = {
    "write `inputs -> outputs`": ["i", "i, j", "", "i -> j -> k"],
    "write at least one identifier between parentheses": ["() -> i", "i -> ()"],
    "write one level of parentheses": ["((i j) k) -> i", "(i (j k)) -> i", "i -> (i (j k))"],
    "close each parenthesis in its dimension, and open it first": ["(i j -> i", "(i j, k -> i", "i) -> i", "i -> (i j"],
    "write `*` as a dimension of its own": ["(* i) -> i", "(i *) -> i"],
    "write `?` alone, for an argument or a result that is no tensor": [
        "i ? -> i",
        "? i -> i",
        "(? i) -> i",
        "(i ?) -> i",
    ],
    "write the dimensions of each tensor, `1` for a scalar": [", i -> i", "i, , j -> i", "i, -> j", "i -> j,"],
}
"""Advice for common errors, each with examples of wrong annotations."""


@lru_cache(maxsize=1024)
def parse_operator(text: str) -> OperatorAnnotation:
    """Parse the annotation of an operator.

    Raises:
        AnnotationError: The annotation cannot be parsed, or is inconsistent.
    """
    if joined := _JOINED.search(text):
        shown = f"{text}\n{' ' * joined.end(1)}^"
        raise AnnotationError(f"write a space between identifiers, `{joined[1]} {joined[2]}`", shown, joined.end(1))
    tree = _NOTATION.parse(text)
    try:
        return _ToAnnotation().transform(tree)
    except VisitError as wrapped:
        raise wrapped.orig_exc from None


class _ToAnnotation(Transformer[Token, OperatorAnnotation]):
    """Transforms the parse tree to an annotation; the arguments of a method are the transformed children."""

    def annotation(self, parts: list[Any]) -> OperatorAnnotation:
        inputs, outputs = parts
        return OperatorAnnotation(inputs, outputs)

    def values(self, parts: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        return tuple(parts)

    def value(self, parts: list[Any]) -> Tensor | None:
        if isinstance(parts[0], Token):
            return None
        tensor: tuple[Dim, ...] = tuple(parts)
        if sum(dim[0].name == EXPANDS for dim in tensor) > 1:
            raise AnnotationError("`*` occurs twice in one tensor")
        return tensor

    def dim(self, parts: list[Token]) -> Dim:
        return tuple(map(_identifier, parts))


def _identifier(token: Token) -> Identifier:
    text = str(token)
    name = text.rstrip("+^")
    reduction = Reduction(text[len(name) :])
    if name.isdecimal():
        if reduction is Reduction.SUM:
            raise AnnotationError(f"`{text}` is a number, which can't be split: write `{name}`")
        reduction = Reduction.UNSHARDABLE
    return Identifier(name, reduction)


_NOTATION = Notation(_GRAMMAR, _WORDS, MISTAKES)
