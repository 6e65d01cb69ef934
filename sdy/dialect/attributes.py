"""The attributes of the dialect: each a value of `sdy/*.py` and its text.

An attribute whose text has no angle brackets of its own is written `#sdy<name...>` where it stands alone, such as
`#sdy<axis_ref_list{"x"}>`; the others are `#sdy.name<...>`. Operations print the text alone.
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
from sdy.ir.shared import SharedData, ValueT
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule, TensorMapping
from sdy.sharding import DimSharding, TensorSharding

SHARDING = "sdy.sharding"
"""The name of the attribute in which functions' arguments and results, and operations, keep their shardings."""
SHARDING_RULE = "sdy.sharding_rule"
"""The name of the attribute in which an operation keeps its sharding rule."""
OPERATOR = "sdy.operator"
"""The name of the attribute in which an operation keeps which annotated operator it calls."""
PROPAGATION_EDGES = "sdy.propagation_edges"
"""The name of the attribute in which an operation keeps how its shardings were propagated."""
RESULT_PROPAGATION_EDGES = "sdy.result_propagation_edges"
"""As `PROPAGATION_EDGES`, one for each result of an operation with data-flow edges."""
BLOCK_ARG_PROPAGATION_EDGES = "sdy.block_arg_propagation_edges"
"""As `PROPAGATION_EDGES`, one for each block argument of an operation with data-flow edges."""
SHARDING_ORIGINS = "sdy.sharding_origins"
"""The name of the attribute that tells which sharding of the user each axis of a sharding came from."""
RESULT_SHARDING_ORIGINS = "sdy.result_sharding_origins"
"""As `SHARDING_ORIGINS`, one for each result of an operation with data-flow edges."""
BLOCK_ARG_SHARDING_ORIGINS = "sdy.block_arg_sharding_origins"
"""As `SHARDING_ORIGINS`, one for each block argument of an operation with data-flow edges."""
SHARDING_ORIGIN_NAME = "sdy.sharding_origin_name"
"""The name of the attribute that names a constraint or a manual computation, for the attributes above to refer to."""


class Syntax(NamedTuple):
    """How a value is read and written, the name of its attribute aside."""

    parse: Callable[[AttrParser], Any]
    text: Callable[[Any], str]


class ValueAttr(SharedData[ValueT]):
    """An attribute that holds a plain value, its `data`."""

    SYNTAX: ClassVar[Syntax]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ValueT:
        """Read the value, or the whole attribute or an alias of it, which may stand in its place in an operation."""
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
    """`#sdy<axis_ref_list{"x", "y"}>`: some axes."""

    name = "sdy.axis_ref_list"
    SYNTAX = Syntax(axis_syntax.parse_axes, axis_syntax.axes_text)


@irdl_attr_definition
class ListOfAxisRefListsAttr(ValueAttr[tuple[tuple[AxisRef, ...], ...]], OpaqueSyntaxAttribute):
    """`#sdy<list_of_axis_ref_lists[{"x"}, {}]>`: some axes for each dimension."""

    name = "sdy.list_of_axis_ref_lists"
    SYNTAX = Syntax(axis_syntax.parse_axis_lists, axis_syntax.axis_lists_text)


@irdl_attr_definition
class ManualAxesAttr(ValueAttr[tuple[str, ...]], OpaqueSyntaxAttribute):
    """`#sdy<manual_axes{"x"}>`: the axes that a manual computation handles by itself."""

    name = "sdy.manual_axes"
    SYNTAX = Syntax(axis_syntax.parse_axis_names, axis_syntax.axis_names_text)


@irdl_attr_definition
class DimensionShardingAttr(ValueAttr[DimSharding], OpaqueSyntaxAttribute):
    """`#sdy<dimension_sharding{"x", ?}p1>`: how one dimension is split."""

    name = "sdy.dimension_sharding"
    SYNTAX = Syntax(sharding_syntax.parse_dim_sharding, sharding_syntax.dim_sharding_text)


@irdl_attr_definition
class TensorShardingAttr(ValueAttr[TensorSharding]):
    """`#sdy.sharding<@mesh, [{"x"}, {?}]>`: how a tensor is split."""

    name = "sdy.sharding"
    SYNTAX = Syntax(sharding_syntax.parse_sharding, sharding_syntax.sharding_text)


@irdl_attr_definition
class TensorShardingPerValueAttr(ValueAttr[tuple[TensorSharding, ...]]):
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>`: how each of several tensors is split."""

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
    """`#sdy<all_to_all_param_list[{"x"}: 0->1]>`: all that moves in one all-to-all."""

    name = "sdy.all_to_all_param_list"
    SYNTAX = Syntax(collective_syntax.parse_all_to_all_params, collective_syntax.all_to_all_params_text)


@irdl_attr_definition
class EdgeValueRefAttr(ValueAttr[EdgeValue], SpacedOpaqueSyntaxAttribute):
    """`#sdy<edge_value_ref operand-0>`: an operand or a result."""

    name = "sdy.edge_value_ref"
    SYNTAX = Syntax(propagation_edges.parse_edge_value, propagation_edges.edge_value_text)


@irdl_attr_definition
class AxisToPropagationDetailsAttr(ValueAttr[AxisEdge], OpaqueSyntaxAttribute):
    """`#sdy<axis_to_propagation_details{"x" = operand-0 -> [result-0]}>`: the way of one axis."""

    name = "sdy.axis_to_propagation_details"
    SYNTAX = Syntax(propagation_edges.parse_axis_edge, propagation_edges.axis_edge_text)


@irdl_attr_definition
class PropagationOneStepAttr(ValueAttr[PropagationStep], OpaqueSyntaxAttribute):
    """`#sdy<propagation_one_step{step-0 = [...]}>`: what one step of propagation moved."""

    name = "sdy.propagation_one_step"
    SYNTAX = Syntax(propagation_edges.parse_propagation_step, propagation_edges.propagation_step_text)


@irdl_attr_definition
class PropagationEdgesAttr(ValueAttr[tuple[PropagationStep, ...]]):
    """`#sdy.propagation_edges<[{step-0 = [...]}]>`: what every step of propagation moved."""

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
