"""Syntax of sharding rules: `<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>`.

Factors are named `i` to `z` in the order of their index, and then `z_1`, `z_2`, ... A dimension of several factors is
the concatenation of their names: `ij`, `zz_1`, `z_8z_9`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from xdsl.parser import AttrParser

from sdy.diagnostics import Diagnostic, Severity, report
from sdy.dialect.axis_syntax import parse_int, parse_keyword, parse_word
from sdy.dialect.field import Field, parse_close, parse_elements
from sdy.parse_errors import next_location, parse_error
from sdy.rule import OpShardingRule, TensorMapping

T = TypeVar("T")

_LAST_LETTER = ord("z") - ord("i")
_LARGEST_INDEX = 2**63 - 1
_FACTOR = re.compile(r"z_(?P<number>[0-9]*)|(?P<letter>.)", re.DOTALL)
_KINDS = ("reduction", "need_replication", "permutation", "blocked_propagation")


def factor_name(index: int) -> str:
    """Return the name of a factor: `i` for factor 0, `z` for 17, `z_1` for 18."""
    return chr(ord("i") + index) if index <= _LAST_LETTER else f"z_{index - _LAST_LETTER}"


def factor_names(indices: Iterable[int]) -> str:
    """Return the names of the factors of one dimension: `ij`."""
    return "".join(map(factor_name, indices))


def _parse_factor(parser: AttrParser, names: str) -> tuple[int, str]:
    """Return the index of the first factor in `names`, and the rest of `names`."""
    match = _FACTOR.match(names)
    assert match is not None, "a keyword is never empty"
    rest = names[match.end() :]
    if (letter := match["letter"]) is not None:
        if not "i" <= letter <= "z":
            raise parse_error(parser, f"expecting symbol from 'i' to 'z'. Received: '{letter}'")
        return ord(letter) - ord("i"), rest
    number = match["number"]
    if not number:
        raise parse_error(parser, f"expecting integer after 'z_'. Received: '{names}'")
    if number.startswith("0"):
        raise parse_error(parser, f"expecting positive integer without leading zeros. Received: '{number}'")
    if len(number) > len(str(_LARGEST_INDEX)) or int(number) > _LARGEST_INDEX:
        # MLIR reports the error and continues as if the number were 0.
        message = f"expecting symbol index <=2^63-1. Received: '{number}'"
        report(Diagnostic(Severity.ERROR, next_location(parser), message))
        return _LAST_LETTER, rest
    return int(number) + _LAST_LETTER, rest


def parse_dim_mapping(parser: AttrParser) -> tuple[int, ...]:
    """Parse the factors of one dimension; none if no identifier is next."""
    indices: list[int] = []
    names = parser.parse_optional_identifier() or ""
    while names:
        index, names = _parse_factor(parser, names)
        indices.append(index)
    return tuple(indices)


_DIM_MAPPINGS = Field(
    "TensorMapping", "dim_mappings", "::llvm::ArrayRef<DimMappingAttr>", parse_dim_mapping, "sdy.dim_mapping"
)


def parse_tensor_mapping(parser: AttrParser) -> TensorMapping:
    """Parse `[i, jk]`."""
    parser.parse_punctuation("[")
    return _DIM_MAPPINGS.read_until(parser, "]")


def tensor_mapping_text(mapping: TensorMapping) -> str:
    """Format `[i, jk]`."""
    return f"[{', '.join(map(factor_names, mapping))}]"


_OPERANDS, _RESULTS = (
    Field("OpShardingRule", name, "::llvm::ArrayRef<TensorMappingAttr>", parse_tensor_mapping, "sdy.tensor_mapping")
    for name in ("operand_mappings", "result_mappings")
)


def _parse_tensor_mappings(parser: AttrParser, field: Field[TensorMapping]) -> tuple[TensorMapping, ...]:
    parser.parse_punctuation("(")
    mappings = field.read_several(parser)
    parse_close(parser, ")")
    return mappings


def _parse_factor_sizes(parser: AttrParser) -> tuple[int, ...]:
    sizes: list[int] = []

    def parse_size(parser: AttrParser) -> None:
        index, rest = _parse_factor(parser, parse_word(parser))
        if index != len(sizes):
            raise parse_error(
                parser,
                "expecting factor indices to be ordered like an iota ([0,1,2,...], e.g. {i=#, j=#, ...}). Expecting "
                f"factor index symbol '{factor_name(len(sizes))}', received: '{factor_name(index)}'",
            )
        if rest:
            raise parse_error(parser, f"expecting single factor symbol: {rest}")
        parser.parse_punctuation("=")
        sizes.append(parse_int(parser))

    _parse_optional_braces(parser, parse_size)
    return tuple(sizes)


def _parse_optional_braces(parser: AttrParser, parse_element: Callable[[AttrParser], T]) -> tuple[T, ...]:
    if not parser.parse_optional_punctuation("{") or parser.parse_optional_punctuation("}"):
        return ()
    elements = parse_elements(parser, parse_element)
    parse_close(parser, "}")
    return elements


def _parse_factors_of_kind(parser: AttrParser, kind: str) -> tuple[int, ...]:
    if not parser.parse_optional_keyword(kind):
        return ()
    parser.parse_punctuation("=")
    return _parse_optional_braces(parser, lambda parser: _parse_factor(parser, parse_word(parser))[0])


def parse_rule(parser: AttrParser) -> OpShardingRule:
    """Parse a sharding rule, in angle brackets."""
    parser.parse_punctuation("<")
    operands = _parse_tensor_mappings(parser, _OPERANDS)
    parser.parse_punctuation("->")
    results = _parse_tensor_mappings(parser, _RESULTS)
    sizes = _parse_factor_sizes(parser)
    of_kind = [_parse_factors_of_kind(parser, kind) for kind in _KINDS]
    is_custom = parser.parse_optional_punctuation(",") is not None
    if is_custom:
        parse_keyword(parser, "custom")
    parser.parse_punctuation(">")
    return OpShardingRule(sizes, operands, results, *of_kind, is_custom=is_custom)


@lru_cache(maxsize=4096)
def rule_text(rule: OpShardingRule) -> str:
    """Format a sharding rule for `parse_rule`."""
    operands, results = (", ".join(map(tensor_mapping_text, mappings)) for mappings in (rule.operands, rule.results))
    text = f"({operands})->({results})"
    if rule.factor_sizes:
        text += f" {{{', '.join(f'{factor_name(index)}={size}' for index, size in enumerate(rule.factor_sizes))}}}"
    of_kind = (rule.reduction, rule.need_replication, rule.permutation, rule.blocked_propagation)
    for kind, factors in zip(_KINDS, of_kind, strict=True):
        if factors:
            text += f" {kind}={{{', '.join(map(factor_name, factors))}}}"
    return f"<{text}{', custom' if rule.is_custom else ''}>"
