"""The annotation syntax of sharding rules, similar to einsum and to JAX's `custom_partitioning`.

    i k, k j -> i j  reduction={k}                  a matrix product
    ... i k, k j -> ... i j  reduction={k}          with any number of leading dimensions
    (i j) -> i j                                    a reshape that splits a dimension
    i (j k) -> i j k  {j=2}                         j is never the only factor of a dimension, so its size is explicit

A tensor is a list of dimensions; a dimension is a factor or a list of factors in parentheses, major to minor. The
ellipses of all tensors stand for the same leading dimensions; `...1`, `...2` stand for others. If a factor is the only
factor of a dimension, it has the dimension's size; the smallest, if several differ. Other factors need a size in
braces. Factors are pass-through factors unless they are listed as `reduction`, `need_replication` or `permutation`;
shardings do not propagate along factors that are listed as `blocked_propagation`.

    matmul = parse_annotation("i k, k j -> i j reduction={k}")
    matmul.rule([(4, 8), (8, 6)], [(4, 6)])         ([i, j],[j, k])->([i, k]) {i=4, j=8, k=6} reduction={j}
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from lark import Token, Transformer
from lark.exceptions import VisitError
from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.ir.shapes import shape_of
from sdy.rule import OpShardingRule
from sdy.rules.annotated_factors import AnnotatedTensor, Annotation, AnnotationError
from sdy.rules.notation import Notation
from sdy.rules.registry import CompleteRuleFunction

GRAMMAR = r"""
    annotation: tensors _ARROW tensors sizes? kind*
    tensors: tensor ("," tensor)*
    tensor: ELLIPSIS? dim*
    dim: FACTOR | "(" FACTOR FACTOR+ ")"
    sizes: "{" size ("," size)* "}"
    size: FACTOR "=" INT
    kind: KIND "=" "{" FACTOR ("," FACTOR)* "}"

    _ARROW: "->"
    ELLIPSIS: /\.\.\.\d*/
    KIND.2: /(reduction|need_replication|permutation|blocked_propagation)(?=\s*=)/
    FACTOR: /[^\W\d_]\w*/

    %import common.INT
    %import common.WS
    %ignore WS
"""

MISTAKES = {
    "write `operands -> results`": ["i", "i, j", "", "i -> j -> k", "i => j"],
    "write at least two factors between parentheses, or leave them out": ["(i) -> i", "() -> i", "i -> (i)"],
    "write one level of parentheses": ["((i j) k) -> i", "(i (j k)) -> i", "i -> (i (j k))", "(i j (k l)) -> i"],
    "close each parenthesis in its dimension, and open it first": ["(i j -> i", "(i j, k -> i", "i) -> i", "i -> (i j"],
    "write `...` before the other dimensions": [
        "i ... -> i",
        "(i ...) -> i",
        "(... i) -> i",
        "i -> i ...",
        "... ... -> i",
    ],
    "write sizes as `{i=2, j=4}`": ["i -> i {2}", "i -> i {i}", "i -> i {i=j}", "i -> i {}"],
    "list factors as `reduction={i}`, `need_replication={i}`, `permutation={i}` or `blocked_propagation={i}`": [
        "i -> i sum={i}",
        "i -> i reduction=i",
        "i -> i reduction={}",
        "i -> i reduction={2}",
    ],
    "begin each factor's name with a letter": ["1 -> i", "i 1 -> i", "(1 i) -> i", "i -> 1"],
}
"""Advice for common errors, each with examples of wrong annotations."""


WORDS = {
    "_ARROW": "`->`",
    "COMMA": "`,`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "EQUAL": "`=`",
    "ELLIPSIS": "`...`",
    "FACTOR": "a factor's name",
    "INT": "a number",
    "KIND": "a kind of factors, as `reduction={i}`",
    "$END": "the end",
}
"""The names of the grammar's terminals in messages."""


class _FactorsOfKind(NamedTuple):
    kind: str
    factors: tuple[str, ...]


@lru_cache(maxsize=1024)
def parse_annotation(text: str) -> Annotation:
    """Parse an annotation.

    Raises:
        AnnotationError: The annotation cannot be parsed, or is inconsistent.
    """
    tree = _NOTATION.parse(text)
    try:
        annotation = _ToAnnotation().transform(tree)
    except VisitError as wrapped:
        raise wrapped.orig_exc from None
    _check_factors(annotation)
    return annotation


def rule_from_annotation(name: str, annotation: str) -> CompleteRuleFunction:
    """Return a function that builds the rules of operations from an annotation.

    The function raises DiagnosticError if the annotation does not match an operation. The rules do not count as custom
    rules, since they can be rebuilt: they may be dropped from the module, and operands are resharded to match them.

    Args:
        name: The name of the operations in messages.
        annotation: The annotation.

    Raises:
        AnnotationError: The annotation cannot be parsed.
    """
    parsed = parse_annotation(annotation)

    def make(op: Operation, conservative: bool) -> OpShardingRule:
        try:
            rule = parsed.rule([shape_of(value) for value in op.operands], [shape_of(value) for value in op.results])
        except AnnotationError as mismatch:
            raise error(op, f"the annotation `{annotation}` doesn't fit '{name}': {mismatch}") from None
        return replace(rule, is_custom=False)

    return make


def _check_factors(annotation: Annotation) -> None:
    dims = [dim for tensor in annotation.operands + annotation.results for dim in tensor.dims]
    factors = dict.fromkeys(factor for dim in dims for factor in dim)
    sole = {dim[0] for dim in dims if len(dim) == 1}
    for factor in factors:
        if factor not in sole and factor not in annotation.sizes:
            advice = f"give its size, as in `{{{factor}=2}}`"
            raise AnnotationError(f"factor '{factor}' is never the only factor of a dimension; {advice}")
    for factor in annotation.sizes:
        if factor not in factors:
            raise AnnotationError(f"factor '{factor}' has a size, but is in no tensor")
        if factor in sole:
            raise AnnotationError(
                f"factor '{factor}' is the only factor of a dimension, which determines its size; remove the size"
            )
    for tensor in annotation.operands + annotation.results:
        _check_unique([factor for dim in tensor.dims for factor in dim], "occurs twice in one tensor")
    for kind, listed in annotation.kinds.items():
        _check_unique(listed, f"occurs twice in `{kind}`")
        for factor in listed:
            if factor not in factors:
                raise AnnotationError(f"factor '{factor}' is in `{kind}`, but in no tensor")
    exclusive = [
        factor for kind, listed in annotation.kinds.items() if kind != "blocked_propagation" for factor in listed
    ]
    _check_unique(exclusive, "is of more than one kind")


def _check_unique(names: Sequence[str], problem: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise AnnotationError(f"'{name}' {problem}")


class _ToAnnotation(Transformer[Token, Annotation]):
    """Transforms the parse tree to an annotation; the arguments of a method are the transformed children."""

    def annotation(self, parts: list[Any]) -> Annotation:
        operands, results, *rest = parts
        sizes: dict[str, int] = {}
        kinds: dict[str, tuple[str, ...]] = {}
        for part in rest:
            if isinstance(part, _FactorsOfKind):
                _check_unique([*kinds, part.kind], "is listed twice")
                kinds[part.kind] = part.factors
            else:
                sizes = part
        return Annotation(operands, results, sizes, kinds)

    def tensors(self, parts: list[AnnotatedTensor]) -> tuple[AnnotatedTensor, ...]:
        return tuple(parts)

    def tensor(self, parts: list[Any]) -> AnnotatedTensor:
        if parts and isinstance(parts[0], Token):
            return AnnotatedTensor(f"...{int(parts[0][3:] or 0)}", tuple(parts[1:]))
        return AnnotatedTensor(None, tuple(parts))

    def dim(self, factors: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, factors))

    def sizes(self, sizes: list[tuple[str, int]]) -> dict[str, int]:
        _check_unique([factor for factor, _ in sizes], "has two sizes")
        return dict(sizes)

    def size(self, parts: list[Token]) -> tuple[str, int]:
        return str(parts[0]), int(parts[1])

    def kind(self, parts: list[Token]) -> _FactorsOfKind:
        return _FactorsOfKind(str(parts[0]), tuple(map(str, parts[1:])))


_NOTATION = Notation(GRAMMAR, WORDS, MISTAKES)
