"""Syntax of shardings: `<@mesh, [{"x", ?}, {}p1], replicated={"y"}, unreduced=max{"z"}>`.

Each dimension is a list of axes, open if it ends with `?`, followed by its priority. An inlined mesh may replace the
symbol: `<mesh<["x"=4]>, [{"x"}]>`.
"""

import re
from functools import lru_cache
from typing import get_args

from xdsl.parser import AttrParser

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text, parse_axis, symbol_text
from sdy.dialect.field import Field, parse_close, parse_elements, parse_value_of
from sdy.dialect.mesh_syntax import mesh_text, parse_mesh
from sdy.mesh import Mesh
from sdy.parse_errors import explained, parse_error
from sdy.sharding import DimSharding, Reduction, TensorSharding

_FAILURE = "failed to parse Sdy_TensorSharding parameter"
_PRIORITY = re.compile(r"p([0-9]+)")
_LARGEST_PRIORITY = 2**63 - 1
_REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)


def parse_dim_sharding(parser: AttrParser) -> DimSharding:
    """Parse `{"x", ?}p1`."""
    axes: list[AxisRef] = []
    is_closed = True
    parser.parse_punctuation("{")
    while not parser.parse_optional_punctuation("}"):
        if axes:
            parser.parse_punctuation(",")
        if parser.parse_optional_punctuation("?"):
            is_closed = False
            parser.parse_punctuation("}")
            break
        axes.append(parse_axis(parser))
    return DimSharding(tuple(axes), is_closed, _parse_priority(parser))


def _parse_priority(parser: AttrParser) -> int | None:
    word = parser.parse_optional_identifier()
    if word is None:
        return None
    match = _PRIORITY.fullmatch(word)
    if match is None:
        raise parse_error(parser, f"expecting priority in format 'p<number>', got: {word}")
    digits = match[1]
    if digits.startswith("0") and digits != "0":
        raise parse_error(parser, f"priorities with leading zeros are not allowed, got: {word}")
    if len(digits) > len(str(_LARGEST_PRIORITY)) or int(digits) > _LARGEST_PRIORITY:
        raise parse_error(parser, f"expecting integer priority, got: {word}")
    return int(digits)


def dim_sharding_text(dim: DimSharding) -> str:
    """Format `{"x", ?}p1`."""
    parts = [*map(str, dim.axes), *(() if dim.is_closed else ("?",))]
    return f"{{{', '.join(parts)}}}{'' if dim.priority is None else f'p{dim.priority}'}"


_DIMS = Field(
    "TensorSharding",
    "dim_shardings",
    "::llvm::ArrayRef<DimensionShardingAttr>",
    parse_dim_sharding,
    "sdy.dimension_sharding",
)


def parse_sharding(parser: AttrParser) -> TensorSharding:
    """Parse the sharding of a tensor, in angle brackets."""
    parser.parse_punctuation("<")
    mesh = _parse_mesh_or_symbol(parser)
    parser.parse_punctuation(",")
    parser.parse_punctuation("[")
    dims = _DIMS.read_until(parser, "]")
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: Reduction = "sum"
    while parser.parse_optional_punctuation(","):
        if not replicated and parser.parse_optional_keyword("replicated"):
            replicated = explained(parser, _parse_replicated, f"{_FAILURE} 'replicated_axes'")
        elif not unreduced and parser.parse_optional_keyword("unreduced"):
            if parser.parse_optional_punctuation("="):
                reduction = parse_optional_reduction(parser) or "sum"
            unreduced = explained(parser, _parse_some_axes, f"{_FAILURE} 'unreduced_axes'")
        else:
            raise parse_error(parser, "failed to parse Sdy_TensorSharding, expected valid named axis list after comma")
    parser.parse_punctuation(">")
    return TensorSharding(mesh, dims, replicated, unreduced, reduction)


def _parse_mesh_or_symbol(parser: AttrParser) -> str | Mesh:
    if parser.parse_optional_keyword("mesh"):
        return explained(parser, _parse_inlined_mesh, "failed to parse MeshAttr")
    failure = "expecting MeshAttr or FlatSymbolRefAttr, got: <<NULL ATTRIBUTE>>"
    return explained(parser, _parse_symbol, failure)


def _parse_inlined_mesh(parser: AttrParser) -> Mesh:
    return parse_value_of(parser, "sdy.mesh", parse_mesh)


def _parse_symbol(parser: AttrParser) -> str:
    symbol = parser.parse_optional_symbol_name()
    if symbol is None:
        start = parser.pos
        parser.parse_attribute()
        raise parse_error(parser, "invalid kind of attribute specified", start)
    return symbol.data


def _parse_replicated(parser: AttrParser) -> tuple[AxisRef, ...]:
    parser.parse_punctuation("=")
    return _parse_some_axes(parser)


def _parse_axis_elements(parser: AttrParser) -> tuple[AxisRef, ...]:
    return parse_elements(parser, lambda parser: parse_value_of(parser, "sdy.axis_ref", parse_axis))


def _parse_some_axes(parser: AttrParser) -> tuple[AxisRef, ...]:
    parser.parse_punctuation("{")
    failure = "failed to parse axis list which is expected to be an `ArrayRef<AxisRefAttr>`"
    axes = explained(parser, _parse_axis_elements, failure)
    parse_close(parser, "}")
    return axes


def parse_optional_reduction(parser: AttrParser) -> Reduction | None:
    """Parse `sum`, `max` or `min`, if present."""
    return next((reduction for reduction in _REDUCTIONS if parser.parse_optional_keyword(reduction)), None)


@lru_cache(maxsize=4096)
def sharding_text(sharding: TensorSharding) -> str:
    """Format the sharding of a tensor for `parse_sharding`."""
    mesh = symbol_text(sharding.mesh) if isinstance(sharding.mesh, str) else f"mesh{mesh_text(sharding.mesh)}"
    parts = [mesh, f"[{', '.join(map(dim_sharding_text, sharding.dims))}]"]
    if sharding.replicated:
        parts.append(f"replicated={axes_text(sharding.replicated)}")
    if sharding.unreduced:
        reduction = "" if sharding.reduction == "sum" else sharding.reduction
        parts.append(f"unreduced={reduction}{axes_text(sharding.unreduced)}")
    return f"<{', '.join(parts)}>"


def parse_sharding_list(parser: AttrParser) -> tuple[TensorSharding, ...]:
    """Parse `[<@mesh, [{"x"}]>, <@mesh, []>]`."""
    parser.parse_punctuation("[")
    if parser.parse_optional_characters("]"):
        return ()
    shardings = parse_elements(parser, lambda parser: parse_value_of(parser, "sdy.sharding", parse_sharding))
    parse_close(parser, "]")
    return shardings


def sharding_list_text(shardings: tuple[TensorSharding, ...]) -> str:
    """Format `[<@mesh, [{"x"}]>, <@mesh, []>]`."""
    return f"[{', '.join(map(sharding_text, shardings))}]"


_SHARDINGS = Field(
    "TensorShardingPerValue",
    "shardings",
    "::llvm::ArrayRef<TensorShardingAttr>",
    parse_sharding,
    "sdy.sharding",
)


def parse_sharding_per_value(parser: AttrParser) -> tuple[TensorSharding, ...]:
    """Parse a list of shardings, in angle brackets."""
    parser.parse_punctuation("<")
    parser.parse_punctuation("[")
    shardings = _SHARDINGS.read_until(parser, "]")
    parser.parse_punctuation(">")
    return shardings


def sharding_per_value_text(shardings: tuple[TensorSharding, ...]) -> str:
    """Format a list of shardings, in angle brackets."""
    return f"<{sharding_list_text(shardings)}>"
