"""The type of tensors on a named mesh: `!mpmd.mesh_tensor<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>>`."""

from collections.abc import Sequence

from xdsl.dialects.builtin import NoneAttr, ShapedType, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.hints import isa

from sdy.axes import quoted
from sdy.dialect.attributes import TensorShardingAttr
from sdy.dialect.axis_syntax import parse_axis_name as parse_string
from sdy.dialect.axis_syntax import parse_keyword
from sdy.ir.constraints import Described
from sdy.parse_errors import parse_error
from sdy.sharding import TensorSharding

NO_PARAMETER = NoneAttr()


@irdl_attr_definition
class MeshTensorType(ParametrizedAttribute, TypeAttribute, ShapedType):
    """A tensor on a mesh of the topology, replicated without a sharding, in device memory without a memory kind."""

    name = "mpmd.mesh_tensor"
    mesh_name: StringAttr
    tensor: TensorType[Attribute]
    """The global type."""
    sharding_attr: TensorShardingAttr | NoneAttr
    memory_kind_attr: StringAttr | NoneAttr

    def __init__(
        self,
        mesh: str,
        tensor: TensorType[Attribute],
        sharding: TensorSharding | None = None,
        memory_kind: str | None = None,
    ):
        super().__init__(
            StringAttr(mesh),
            tensor,
            NO_PARAMETER if sharding is None else TensorShardingAttr(sharding),
            NO_PARAMETER if memory_kind is None else StringAttr(memory_kind),
        )

    @property
    def mesh(self) -> str:
        """The name of the mesh."""
        return self.mesh_name.data

    @property
    def sharding(self) -> TensorSharding | None:
        """The sharding over the mesh; None for a replicated tensor."""
        return None if isinstance(self.sharding_attr, NoneAttr) else self.sharding_attr.data

    @property
    def memory_kind(self) -> str | None:
        """The memory that the tensor is in, "device" or "pinned_host"; None for the default."""
        return None if isinstance(self.memory_kind_attr, NoneAttr) else self.memory_kind_attr.data

    @property
    def is_fully_replicated(self) -> bool:
        """True if the tensor is replicated on all devices of the mesh."""
        return self.sharding is None or self.sharding.is_fully_replicated

    def get_num_dims(self) -> int:
        return self.tensor.get_num_dims()

    def get_shape(self) -> tuple[int, ...]:
        return self.tensor.get_shape()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse `<"m1", tensor<8xf32>, sharding=<@mesh, [{"x"}]>, memory_kind="device">`."""
        parser.parse_punctuation("<")
        mesh = parse_string(parser)
        parser.parse_punctuation(",")
        start = parser.pos
        tensor = parser.parse_type()
        if not isa(tensor, TensorType[Attribute]):
            raise parse_error(parser, "invalid kind of type specified", start)
        sharding = memory_kind = None
        more = parser.parse_optional_punctuation(",") is not None
        if more and parser.parse_optional_keyword("sharding") is not None:
            parser.parse_punctuation("=")
            sharding = TensorShardingAttr.parse_parameter(parser)
            more = parser.parse_optional_punctuation(",") is not None
        if more:
            parse_keyword(parser, "memory_kind")
            parser.parse_punctuation("=")
            memory_kind = parse_string(parser)
        parser.parse_punctuation(">")
        return cls(mesh, tensor, sharding, memory_kind).parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print the parameters, in angle brackets."""
        printer.print_string(f"<{quoted(self.mesh)}, ")
        printer.print_attribute(self.tensor)
        if isinstance(self.sharding_attr, TensorShardingAttr):
            printer.print_string(", sharding=")
            self.sharding_attr.print_parameter(printer)
        if self.memory_kind is not None:
            printer.print_string(f", memory_kind={quoted(self.memory_kind)}")
        printer.print_string(">")


def _is_mesh_tensor(type_: Attribute) -> bool:
    return isinstance(type_, MeshTensorType)


MESH_TENSOR = Described("mesh tensor type", _is_mesh_tensor)
