"""Parameters of an all-to-all, and their syntax: `[{"x"}: 0->2, {"y"}: 1->3]`."""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.parser import AttrParser

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text, parse_axis, parse_int
from sdy.dialect.field import Field, parse_close


@dataclass(frozen=True, slots=True)
class AllToAllParam:
    """Move of `axes` from the minor end of dimension `src_dim` to that of dimension `tgt_dim`."""

    axes: tuple[AxisRef, ...]
    src_dim: int
    tgt_dim: int


_AXES = Field("AllToAllParamAttr", "axes", "::llvm::ArrayRef<AxisRefAttr>", parse_axis, "sdy.axis_ref")
_SRC_DIM = Field("AllToAllParamAttr", "src_dim", "int64_t", parse_int)
_TGT_DIM = Field("AllToAllParamAttr", "tgt_dim", "int64_t", parse_int)


def parse_all_to_all_param(parser: AttrParser) -> AllToAllParam:
    """Parse `{"x"}: 0->2`."""
    parser.parse_punctuation("{")
    axes = _AXES.read_several(parser)
    parse_close(parser, "}")
    parser.parse_punctuation(":")
    src_dim = _SRC_DIM.read(parser)
    parser.parse_punctuation("->")
    return AllToAllParam(axes, src_dim, _TGT_DIM.read(parser))


def all_to_all_param_text(param: AllToAllParam) -> str:
    """Format `{"x"}: 0->2`."""
    return f"{axes_text(param.axes)}: {param.src_dim}->{param.tgt_dim}"


_PARAMS = Field(
    "AllToAllParamList",
    "value",
    "::llvm::ArrayRef<AllToAllParamAttr>",
    parse_all_to_all_param,
    "sdy.all_to_all_param",
)


def parse_all_to_all_params(parser: AttrParser) -> tuple[AllToAllParam, ...]:
    """Parse `[{"x"}: 0->2, {"y"}: 1->3]`."""
    parser.parse_punctuation("[")
    return _PARAMS.read_until(parser, "]")


def all_to_all_params_text(params: Iterable[AllToAllParam]) -> str:
    """Format `[{"x"}: 0->2, {"y"}: 1->3]`."""
    return f"[{', '.join(map(all_to_all_param_text, params))}]"
