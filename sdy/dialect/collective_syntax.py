"""The parameters of an all-to-all, and their text: `[{"x"}: 0->2, {"y"}: 1->3]`."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.parser import AttrParser

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text, parse_axes, parse_int, parse_list


@dataclass(frozen=True, slots=True)
class AllToAllParam:
    """`axes` leave the minor end of dimension `src_dim` and are appended to dimension `tgt_dim`."""

    axes: tuple[AxisRef, ...]
    src_dim: int
    tgt_dim: int


def parse_all_to_all_param(parser: AttrParser) -> AllToAllParam:
    """`{"x"}: 0->2`."""
    axes = parse_axes(parser)
    parser.parse_punctuation(":")
    src_dim = parse_int(parser)
    parser.parse_punctuation("->")
    return AllToAllParam(axes, src_dim, parse_int(parser))


def all_to_all_param_text(param: AllToAllParam) -> str:
    """`{"x"}: 0->2`."""
    return f"{axes_text(param.axes)}: {param.src_dim}->{param.tgt_dim}"


def parse_all_to_all_params(parser: AttrParser) -> tuple[AllToAllParam, ...]:
    """`[{"x"}: 0->2, {"y"}: 1->3]`."""
    parser.parse_punctuation("[")
    return parse_list(parser, "]", parse_all_to_all_param)


def all_to_all_params_text(params: Iterable[AllToAllParam]) -> str:
    """`[{"x"}: 0->2, {"y"}: 1->3]`."""
    return f"[{', '.join(map(all_to_all_param_text, params))}]"
