"""The annotation of an operator, as it is written: nnScaler's notation.

    m^ kd+, kd+ n -> m^ n        a matrix product that may be split along kd, with a sum, and along n
    (h t) k -> h t k             a reshape; h or t is the argument of that name, or follows from the size of the other
    * t -> a * t                 `*` are the same dimensions wherever it stands
    a b, ? -> a, ?               `?` is no tensor
    1024 b -> b 2                a number is a size, and can't be split

A dimension is an identifier and what may be done along it: with nothing behind it, it may be split wherever it stands;
with `+`, the outputs that lack it are then to be summed; with `^` it may not be split.

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
"""Two identifiers without a space between them, as `1m` or `a+b`."""

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
"""What to write instead, and annotations that want that said."""


@lru_cache(maxsize=1024)
def parse_operator(text: str) -> OperatorAnnotation:
    """Read the annotation of an operator.

    Raises:
        AnnotationError: it can't be read, or contradicts itself.
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
    """The grammar's tree -> an annotation. A method's argument is what its rule's parts have become."""

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
            raise AnnotationError("`*` stands twice in one tensor")
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
        reduction = Reduction.WHOLE
    return Identifier(name, reduction)


_NOTATION = Notation(_GRAMMAR, _WORDS, MISTAKES)
