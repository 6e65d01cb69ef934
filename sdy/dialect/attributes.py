"""Attributes of the dialect: each wraps a value of `sdy/*.py` and has its syntax.

An attribute whose syntax has no angle brackets of its own is written `#sdy<name...>` where it stands alone, such as
`#sdy<axis_ref_list{"x"}>`; the others are `#sdy.name<...>`. Operations print the value without the prefix.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from xdsl.ir import Attribute, OpaqueSyntaxAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sdy.axes import AxisRef
from sdy.dialect import axis_syntax, collective_syntax, mesh_syntax, propagation_edges, rule_syntax, sharding_syntax
from sdy.dialect.collective_syntax import AllToAllParam
from sdy.dialect.field import parse_value_of
from sdy.dialect.propagation_edges import AxisEdge, EdgeValue, PropagationStep
from sdy.ir.building import SharedData, ValueT
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule, TensorMapping
from sdy.sharding import DimSharding, TensorSharding

SHARDING = "sdy.sharding"
"""Attribute with the shardings of an operation's results, or of a function's argument or result."""
SHARDING_RULE = "sdy.sharding_rule"
"""Attribute with the sharding rule of an operation."""
WORK = "sdy.work"
"""Attribute with the declared work of the annotated operator that an operation stems from: the first of its operations
has the text of the `Work`, the others have an empty text."""
ORDERS = "sdy.orders"
"""Unit attribute of an optimization barrier that XLA has to keep until it has ordered the operations."""
RECOMPUTES = "sdy.recomputes"
"""Unit attribute of an operation that computes a value again."""
ROW_LOOP = "sdy.row_loop"
"""Attribute of a loop that goes on while any row does: why devices do not end with their own rows; empty if they do."""
MEMORY_LIMIT = "sdy.memory_limit"
"""Attribute of a module with the most bytes of a device's memory: values are recomputed until it fits."""
HARDWARE = "sdy.hardware"
"""Attribute of a module with the preset or file of the hardware that the memory limit was planned for."""
OPERATOR = "sdy.operator"
"""Attribute with the annotated operator that an operation calls."""
PROPAGATION_EDGES = "sdy.propagation_edges"
"""Attribute with the record of how shardings were propagated through an operation."""
RESULT_PROPAGATION_EDGES = "sdy.result_propagation_edges"
"""`PROPAGATION_EDGES` for each result of an operation with data-flow edges."""
BLOCK_ARG_PROPAGATION_EDGES = "sdy.block_arg_propagation_edges"
"""`PROPAGATION_EDGES` for each block argument of an operation with data-flow edges."""
SHARDING_ORIGINS = "sdy.sharding_origins"
"""Attribute with the user sharding that each axis of a sharding came from."""
RESULT_SHARDING_ORIGINS = "sdy.result_sharding_origins"
"""`SHARDING_ORIGINS` for each result of an operation with data-flow edges."""
BLOCK_ARG_SHARDING_ORIGINS = "sdy.block_arg_sharding_origins"
"""`SHARDING_ORIGINS` for each block argument of an operation with data-flow edges."""
SHARDING_ORIGIN_NAME = "sdy.sharding_origin_name"
"""Attribute that names a constraint or a manual computation, for the attributes above to refer to."""


class Syntax(NamedTuple):
    """Parser and printer of a value, without the name of its attribute."""

    parse: Callable[[AttrParser], Any]
    text: Callable[[Any], str]


class ValueAttr(SharedData[ValueT]):
    """An attribute that wraps a plain value, its `data`."""

    SYNTAX: ClassVar[Syntax]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ValueT:
        """Parse the value, or a standalone attribute or alias in its place."""
        return parse_value_of(parser, cls.name, cls.SYNTAX.parse)

    def print_parameter(self, printer: Printer) -> None:
        """Print the value."""
        printer.print_string(self.SYNTAX.text(self.data))


@irdl_attr_definition
class MeshAxisAttr(ValueAttr[tuple[str, int]], OpaqueSyntaxAttribute):
    """`#sdy<mesh_axis"x"=4>`: an axis and its size."""

    name = "sdy.mesh_axis"
    SYNTAX = Syntax(mesh_syntax.parse_mesh_axis, mesh_syntax.mesh_axis_text)


@irdl_attr_definition
class MeshAttr(ValueAttr[Mesh]):
    """`#sdy.mesh<["x"=4, "y"=2]>`: the axes of a mesh and the order of its devices."""

    name = "sdy.mesh"
    SYNTAX = Syntax(mesh_syntax.parse_mesh, mesh_syntax.mesh_text)


@irdl_attr_definition
class SubAxisInfoAttr(ValueAttr[tuple[int, int]], OpaqueSyntaxAttribute):
    """`#sdy<sub_axis_info(2)4>`: the pre-size and the size of a sub-axis."""

    name = "sdy.sub_axis_info"
    SYNTAX = Syntax(axis_syntax.parse_sub_axis, axis_syntax.sub_axis_text)


@irdl_attr_definition
class AxisRefAttr(ValueAttr[AxisRef], OpaqueSyntaxAttribute):
    """`#sdy<axis_ref"x":(2)4>`: an axis or a sub-axis."""

    name = "sdy.axis_ref"
    SYNTAX = Syntax(axis_syntax.parse_axis, str)


@irdl_attr_definition
class AxisRefListAttr(ValueAttr[tuple[AxisRef, ...]], OpaqueSyntaxAttribute):
    """`#sdy<axis_ref_list{"x", "y"}>`: a list of axes."""

    name = "sdy.axis_ref_list"
    SYNTAX = Syntax(axis_syntax.parse_axes, axis_syntax.axes_text)


@irdl_attr_definition
class ListOfAxisRefListsAttr(ValueAttr[tuple[tuple[AxisRef, ...], ...]], OpaqueSyntaxAttribute):
    """`#sdy<list_of_axis_ref_lists[{"x"}, {}]>`: a list of axes for each dimension."""

    name = "sdy.list_of_axis_ref_lists"
    SYNTAX = Syntax(axis_syntax.parse_axis_lists, axis_syntax.axis_lists_text)


@irdl_attr_definition
class ManualAxesAttr(ValueAttr[tuple[str, ...]], OpaqueSyntaxAttribute):
    """`#sdy<manual_axes{"x"}>`: the axes over which the body of a manual computation is already partitioned."""

    name = "sdy.manual_axes"
    SYNTAX = Syntax(axis_syntax.parse_axis_names, axis_syntax.axis_names_text)


@irdl_attr_definition
class DimensionShardingAttr(ValueAttr[DimSharding], OpaqueSyntaxAttribute):
    """`#sdy<dimension_sharding{"x", ?}p1>`: the sharding of one dimension."""

    name = "sdy.dimension_sharding"
    SYNTAX = Syntax(sharding_syntax.parse_dim_sharding, sharding_syntax.dim_sharding_text)


@irdl_attr_definition
class TensorShardingAttr(ValueAttr[TensorSharding]):
    """`#sdy.sharding<@mesh, [{"x"}, {?}]>`: the sharding of a tensor."""

    name = "sdy.sharding"
    SYNTAX = Syntax(sharding_syntax.parse_sharding, sharding_syntax.sharding_text)


@irdl_attr_definition
class TensorShardingPerValueAttr(ValueAttr[tuple[TensorSharding, ...]]):
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>`: the shardings of several tensors."""

    name = "sdy.sharding_per_value"
    SYNTAX = Syntax(sharding_syntax.parse_sharding_per_value, sharding_syntax.sharding_per_value_text)


@irdl_attr_definition
class DimMappingAttr(ValueAttr[tuple[int, ...]], SpacedOpaqueSyntaxAttribute):
    """`#sdy<dim_mapping ij>`: the factors of a dimension."""

    name = "sdy.dim_mapping"
    SYNTAX = Syntax(rule_syntax.parse_dim_mapping, rule_syntax.factor_names)


@irdl_attr_definition
class TensorMappingAttr(ValueAttr[TensorMapping], OpaqueSyntaxAttribute):
    """`#sdy<tensor_mapping[i, jk]>`: the factors of each dimension of a tensor."""

    name = "sdy.tensor_mapping"
    SYNTAX = Syntax(rule_syntax.parse_tensor_mapping, rule_syntax.tensor_mapping_text)


@irdl_attr_definition
class OpShardingRuleAttr(ValueAttr[OpShardingRule]):
    """`#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}>`: a sharding rule."""

    name = "sdy.op_sharding_rule"
    SYNTAX = Syntax(rule_syntax.parse_rule, rule_syntax.rule_text)


@irdl_attr_definition
class AllToAllParamAttr(ValueAttr[AllToAllParam], OpaqueSyntaxAttribute):
    """`#sdy<all_to_all_param{"x"}: 0->1>`: the axes that move from one dimension to another."""

    name = "sdy.all_to_all_param"
    SYNTAX = Syntax(collective_syntax.parse_all_to_all_param, collective_syntax.all_to_all_param_text)


@irdl_attr_definition
class AllToAllParamListAttr(ValueAttr[tuple[AllToAllParam, ...]], OpaqueSyntaxAttribute):
    """`#sdy<all_to_all_param_list[{"x"}: 0->1]>`: all moves of one all-to-all."""

    name = "sdy.all_to_all_param_list"
    SYNTAX = Syntax(collective_syntax.parse_all_to_all_params, collective_syntax.all_to_all_params_text)


@irdl_attr_definition
class EdgeValueRefAttr(ValueAttr[EdgeValue], SpacedOpaqueSyntaxAttribute):
    """`#sdy<edge_value_ref operand-0>`: an operand or a result."""

    name = "sdy.edge_value_ref"
    SYNTAX = Syntax(propagation_edges.parse_edge_value, propagation_edges.edge_value_text)


@irdl_attr_definition
class AxisToPropagationDetailsAttr(ValueAttr[AxisEdge], OpaqueSyntaxAttribute):
    """`#sdy<axis_to_propagation_details{"x" = operand-0 -> [result-0]}>`: the propagation of one axis."""

    name = "sdy.axis_to_propagation_details"
    SYNTAX = Syntax(propagation_edges.parse_axis_edge, propagation_edges.axis_edge_text)


@irdl_attr_definition
class PropagationOneStepAttr(ValueAttr[PropagationStep], OpaqueSyntaxAttribute):
    """`#sdy<propagation_one_step{step-0 = [...]}>`: the axes propagated in one step."""

    name = "sdy.propagation_one_step"
    SYNTAX = Syntax(propagation_edges.parse_propagation_step, propagation_edges.propagation_step_text)


@irdl_attr_definition
class PropagationEdgesAttr(ValueAttr[tuple[PropagationStep, ...]]):
    """`#sdy.propagation_edges<[{step-0 = [...]}]>`: the axes propagated in every step."""

    name = "sdy.propagation_edges"
    SYNTAX = Syntax(propagation_edges.parse_propagation_edges, propagation_edges.propagation_edges_text)


ATTRIBUTES: list[type[Attribute]] = [
    MeshAxisAttr,
    MeshAttr,
    SubAxisInfoAttr,
    AxisRefAttr,
    AxisRefListAttr,
    ListOfAxisRefListsAttr,
    ManualAxesAttr,
    DimensionShardingAttr,
    TensorShardingAttr,
    TensorShardingPerValueAttr,
    DimMappingAttr,
    TensorMappingAttr,
    OpShardingRuleAttr,
    AllToAllParamAttr,
    AllToAllParamListAttr,
    EdgeValueRefAttr,
    AxisToPropagationDetailsAttr,
    PropagationOneStepAttr,
    PropagationEdgesAttr,
]
"""All attributes of the dialect."""
