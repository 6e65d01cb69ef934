"""Propagation edges: the record of how axes were propagated through an operation, for explanations.

`<[{step-2 = [{"y" = operand-1 -> [operand-0, result-0]}]}]>`: in step 2 of propagation, axis "y" was propagated from
the sharding of operand 1 to those of operand 0 and result 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from xdsl.parser import AttrParser

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import parse_axis, parse_int, parse_keyword
from sdy.dialect.field import Field, parse_close
from sdy.parse_errors import parse_error

EdgeNode = Literal["operand", "result"]


@dataclass(frozen=True, slots=True)
class EdgeValue:
    """An operand or a result of an operation, by its index."""

    node: EdgeNode
    index: int


@dataclass(frozen=True, slots=True)
class AxisEdge:
    """Propagation of one axis from the sharding of one value to those of others."""

    axis: AxisRef
    source: EdgeValue
    targets: tuple[EdgeValue, ...]


@dataclass(frozen=True, slots=True)
class PropagationStep:
    """Axes propagated in step `index` of propagation."""

    index: int
    edges: tuple[AxisEdge, ...]


def _parse_node(parser: AttrParser) -> EdgeNode:
    start = parser.pos
    word = parser.parse_optional_identifier_or_str_literal()
    if word is None:
        raise parse_error(parser, "expected valid keyword or string")
    if word != "operand" and word != "result":
        raise parse_error(parser, "expected ::mlir::sdy::EdgeNodeType to be one of: operand, result", start)
    return word


_NODE = Field("EdgeValueRef", "type", "::mlir::sdy::EdgeNodeType", _parse_node)
_INDEX = Field("EdgeValueRef", "index", "int64_t", parse_int)


def parse_edge_value(parser: AttrParser) -> EdgeValue:
    """Parse a reference to an operand or result, `operand-1`."""
    node = _NODE.read(parser)
    parser.parse_punctuation("-")
    return EdgeValue(node, _INDEX.read(parser))


def edge_value_text(value: EdgeValue) -> str:
    """Format a reference to an operand or result, `operand-1`."""
    return f"{value.node}-{value.index}"


_AXIS = Field("AxisToPropagationDetails", "axis_name", "::mlir::sdy::AxisRefAttr", parse_axis, "sdy.axis_ref")
_SOURCE = Field(
    "AxisToPropagationDetails", "source", "::mlir::sdy::EdgeValueRefAttr", parse_edge_value, "sdy.edge_value_ref"
)
_TARGETS = Field(
    "AxisToPropagationDetails",
    "targets",
    "::llvm::ArrayRef<EdgeValueRefAttr>",
    parse_edge_value,
    "sdy.edge_value_ref",
)


def parse_axis_edge(parser: AttrParser) -> AxisEdge:
    """Parse `{"y" = operand-1 -> [operand-0, result-0]}`."""
    parser.parse_punctuation("{")
    axis = _AXIS.read(parser)
    parser.parse_punctuation("=")
    source = _SOURCE.read(parser)
    parser.parse_punctuation("->")
    parser.parse_punctuation("[")
    targets = _TARGETS.read_several(parser)
    parse_close(parser, "]")
    parser.parse_punctuation("}")
    return AxisEdge(axis, source, targets)


def axis_edge_text(edge: AxisEdge) -> str:
    """Format `{"y" = operand-1 -> [operand-0, result-0]}`."""
    targets = ", ".join(map(edge_value_text, edge.targets))
    return f"{{{edge.axis} = {edge_value_text(edge.source)} -> [{targets}]}}"


_STEP_INDEX = Field("PropagationOneStep", "step_index", "int64_t", parse_int)
_ENTRIES = Field(
    "PropagationOneStep",
    "axis_entries",
    "::llvm::ArrayRef<AxisToPropagationDetailsAttr>",
    parse_axis_edge,
    "sdy.axis_to_propagation_details",
)


def parse_propagation_step(parser: AttrParser) -> PropagationStep:
    """Parse `{step-2 = [...]}`."""
    parser.parse_punctuation("{")
    parse_keyword(parser, "step")
    parser.parse_punctuation("-")
    index = _STEP_INDEX.read(parser)
    parser.parse_punctuation("=")
    parser.parse_punctuation("[")
    edges = _ENTRIES.read_several(parser)
    parse_close(parser, "]")
    parser.parse_punctuation("}")
    return PropagationStep(index, edges)


def propagation_step_text(step: PropagationStep) -> str:
    """Format `{step-2 = [...]}`."""
    return f"{{step-{step.index} = [{', '.join(map(axis_edge_text, step.edges))}]}}"


_STEPS = Field(
    "PropagationEdges",
    "value",
    "::llvm::ArrayRef<PropagationOneStepAttr>",
    parse_propagation_step,
    "sdy.propagation_one_step",
)


def parse_propagation_edges(parser: AttrParser) -> tuple[PropagationStep, ...]:
    """Parse and verify all steps, in angle brackets."""
    start = parser.pos
    parser.parse_punctuation("<")
    parser.parse_punctuation("[")
    steps = _STEPS.read_until(parser, "]")
    parser.parse_punctuation(">")
    if problem := _problem(steps):
        raise parse_error(parser, problem, start)
    return steps


def propagation_edges_text(steps: Iterable[PropagationStep]) -> str:
    """Format all steps, in angle brackets."""
    return f"<[{', '.join(map(propagation_step_text, steps))}]>"


def _problem(steps: Iterable[PropagationStep]) -> str | None:
    seen: set[int] = set()
    for step in steps:
        if step.index < 0:
            return f"propagation edges have negative step index: {step.index}"
        if step.index in seen:
            return f"propagation edges have duplicate step index: {step.index}"
        seen.add(step.index)
        for edge in step.edges:
            if edge.source in edge.targets:
                return "propagation edges have a source that is the same as a target"
            if len(set(edge.targets)) < len(edge.targets):
                return (
                    f"propagation edges have duplicate targets for step index: {step.index} and axis: {edge.axis.name}"
                )
    return None
