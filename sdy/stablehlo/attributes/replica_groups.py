"""Replica groups along mesh axes, `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>`.

Two devices are in one group if their mesh coordinates differ only in the given axes. The mesh is a symbol, or inline
as `#stablehlo.mesh<axes=[<name = "x", size = 4>]>`.
"""

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IntegerType, SymbolRefAttr
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sdy.axes import AxisRef
from sdy.parse_errors import parse_error
from sdy.stablehlo.attributes.struct_attribute import StructAttr, parse_attribute_of


@irdl_attr_definition
class AxisRefAttr(Data[AxisRef]):
    """`#stablehlo.axis_ref<name = "x">`, or a sub-axis, `<name = "x", sub_axis_info = (2)4>`."""

    name = "stablehlo.axis_ref"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AxisRef:
        """Parse the axis name and the optional sub-axis."""
        with parser.in_angle_brackets():
            parser.parse_keyword("name")
            parser.parse_punctuation("=")
            name = parser.parse_str_literal()
            if parser.parse_optional_punctuation(",") is None:
                return AxisRef(name)
            parser.parse_keyword("sub_axis_info")
            parser.parse_punctuation("=")
            with parser.in_parens():
                pre_size = parser.parse_integer()
            return AxisRef(name, pre_size, parser.parse_integer())

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        with printer.in_angle_brackets():
            printer.print_string("name = ")
            printer.print_string_literal(self.data.name)
            if not self.data.is_full:
                printer.print_string(f", sub_axis_info = ({self.data.pre_size}){self.data.size}")


@dataclass(frozen=True)
class MeshAxis:
    """A named axis and its size."""

    name: str
    size: int


@irdl_attr_definition
class MeshAxisAttr(StructAttr[MeshAxis]):
    """An axis of a mesh, `#stablehlo.mesh_axis<name = "x", size = 4>`."""

    name = "stablehlo.mesh_axis"
    STRUCT = MeshAxis


@dataclass(frozen=True)
class ReplicaGroupMesh:
    """Named axes with their sizes, and the device ids if not in order."""

    axes: tuple[MeshAxis, ...]
    device_ids: Attribute | None = None


@irdl_attr_definition
class MeshAttr(Data[ReplicaGroupMesh]):
    """A mesh, `#stablehlo.mesh<axes=[<name = "x", size = 4>], device_ids=dense<...> : tensor<4xi64>>`."""

    name = "stablehlo.mesh"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ReplicaGroupMesh:
        """Parse the axes and the optional device ids."""
        with parser.in_angle_brackets():
            parser.parse_keyword("axes")
            parser.parse_punctuation("=")
            axes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: cls._parse_axis(parser))
            if parser.parse_optional_punctuation(",") is None:
                return ReplicaGroupMesh(tuple(axes))
            parser.parse_keyword("device_ids")
            parser.parse_punctuation("=")
            start, ids = parser.pos, parse_attribute_of(parser, DenseIntOrFPElementsAttr)
            if not isinstance(cast(DenseIntOrFPElementsAttr, ids).get_element_type(), IntegerType):
                raise parse_error(parser, "invalid kind of attribute specified", start)
            return ReplicaGroupMesh(tuple(axes), ids)

    @staticmethod
    def _parse_axis(parser: AttrParser) -> MeshAxis:
        attribute = parser.parse_optional_attribute()
        return attribute.data if isinstance(attribute, MeshAxisAttr) else MeshAxisAttr.parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters in angle brackets."""
        with printer.in_angle_brackets():
            printer.print_string("axes=[")
            printer.print_list(self.data.axes, lambda axis: MeshAxisAttr(axis).print_parameter(printer))
            printer.print_string("]")
            if self.data.device_ids is not None:
                printer.print_string(", device_ids=")
                printer.print_attribute(self.data.device_ids)


@dataclass(frozen=True)
class ReplicaGroupMeshAxes:
    """A mesh, as a symbol or `MeshAttr`, and the axes that the groups span."""

    mesh: Attribute
    axes: ArrayAttr[AxisRefAttr]


@irdl_attr_definition
class ReplicaGroupMeshAxesAttr(StructAttr[ReplicaGroupMeshAxes]):
    """Replica groups along axes of a mesh, `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>`."""

    name = "stablehlo.replica_group_mesh_axes"
    STRUCT = ReplicaGroupMeshAxes

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ReplicaGroupMeshAxes:
        """Parse `<mesh = ..., axes = [...]>`."""
        start, groups = parser.pos, super().parse_parameter(parser)
        is_flat = isinstance(groups.mesh, SymbolRefAttr) and not groups.mesh.nested_references.data
        if not is_flat and not isinstance(groups.mesh, MeshAttr):
            raise parse_error(parser, "mesh must be a FlatSymbolRefAttr or MeshAttr", start)
        return groups
