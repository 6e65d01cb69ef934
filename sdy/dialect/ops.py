"""Operations of the dialect, except collectives."""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    ReturnLike,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
)

from sdy.dialect.attributes import ManualAxesAttr, MeshAttr, TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.data_flow import ComputationDataFlow, ManualComputationDataFlow
from sdy.dialect.directives import (
    Direction,
    FunctionalType,
    GroupId,
    Name,
    RankedTensorType,
    ShapedType,
    Shardings,
    SingleBlockRegionNoBlockId,
)
from sdy.dialect.enums import DIRECTION, PropagationDirection, direction_attr
from sdy.dialect.interfaces import Elementwise, Verified
from sdy.ir.constraints import RANKED_TENSOR, SHAPED, STATIC_TENSOR
from sdy.mesh import Mesh
from sdy.parse_errors import parse_error
from sdy.sharding import TensorSharding

SAME_TYPE = VarConstraint("T", AnyAttr())
"""The type shared by operand and result."""

SAME_SHAPED = VarConstraint("T", SHAPED)
"""The shaped type shared by operand and result."""

_SAME_TENSOR = VarConstraint("T", RANKED_TENSOR)


@irdl_op_definition
class MeshOp(IRDLOperation):
    """A mesh with a symbol name: `sdy.mesh @mesh = <["x"=4]>`."""

    name = "sdy.mesh"
    sym_name = prop_def(SymbolNameConstraint())
    mesh = prop_def(MeshAttr)
    traits = traits_def(SymbolOpInterface(), HasParent(ModuleOp))
    assembly_format = "$sym_name `=` $mesh attr-dict"

    def __init__(self, name: str, mesh: Mesh):
        super().__init__(properties={"sym_name": StringAttr(name), "mesh": MeshAttr(mesh)})


@irdl_op_definition
class ShardingConstraintOp(IRDLOperation):
    """A user sharding of a value: `%1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>`."""

    name = "sdy.sharding_constraint"
    input = operand_def(SAME_TYPE)
    sharding = prop_def(TensorShardingAttr)
    result = result_def(SAME_TYPE)
    traits = traits_def(Elementwise(), Verified())
    assembly_format = "$input $sharding attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, sharding: TensorSharding):
        properties = {"sharding": TensorShardingAttr(sharding)}
        super().__init__(operands=[value], properties=properties, result_types=[value.type])


@irdl_op_definition
class ReshardOp(IRDLOperation):
    """The operand with another sharding: `%1 = sdy.reshard %0 <@mesh, [{"x"}]> : tensor<8xf32>`."""

    name = "sdy.reshard"
    input = operand_def(SAME_TYPE)
    sharding = prop_def(TensorShardingAttr)
    result = result_def(SAME_TYPE)
    traits = traits_def(Elementwise(), Pure(), Verified())
    assembly_format = "$input $sharding attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, sharding: TensorSharding):
        properties = {"sharding": TensorShardingAttr(sharding)}
        super().__init__(operands=[value], properties=properties, result_types=[value.type])


@irdl_op_definition
class ShardingGroupOp(IRDLOperation):
    """Membership in a group of equally sharded values: `sdy.sharding_group %0 group_id=1 : tensor<8xf32>`."""

    name = "sdy.sharding_group"
    input = operand_def(RANKED_TENSOR)
    group_id = prop_def(IntegerAttr[I64])
    custom_directives = (GroupId, RankedTensorType)
    assembly_format = (
        "$input `group_id` `` `=` `` custom<GroupId>($group_id) attr-dict `:` custom<RankedTensorType>(type($input))"
    )

    def __init__(self, value: SSAValue, group_id: int):
        super().__init__(operands=[value], properties={"group_id": IntegerAttr(group_id, i64)})


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant tensor: `sdy.constant dense<1> : tensor<8xi32>`.

    Never merged with an equal constant, so that each user can have its own copy, with its own sharding.
    """

    name = "sdy.constant"
    value = prop_def(AnyOf((BaseAttr(DenseIntOrFPElementsAttr), BaseAttr(DenseResourceAttr))))
    output = result_def(STATIC_TENSOR)
    traits = traits_def(Pure(), Verified())

    def __init__(self, value: DenseIntOrFPElementsAttr | DenseResourceAttr):
        super().__init__(properties={"value": value}, result_types=[value.get_type()])

    @classmethod
    def parse(cls, parser: Parser) -> "ConstantOp":
        """Parse `{attributes} dense<...> : type`; the result has the type of the value."""
        attributes = parser.parse_optional_attr_dict()
        start = parser.pos
        value: Attribute = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
            raise parse_error(parser, "invalid kind of attribute specified", start)
        properties: dict[str, Attribute] = {"value": value}
        return cls.create(result_types=(value.get_type(),), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print `{attributes} dense<...> : type`."""
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)


@irdl_op_definition
class PropagationBarrierOp(IRDLOperation):
    """Restricts propagation to one direction: `sdy.propagation_barrier %0 allowed_direction=FORWARD : ...`."""

    name = "sdy.propagation_barrier"
    input = operand_def(_SAME_TENSOR)
    allowed_direction = prop_def(DIRECTION)
    result = result_def(_SAME_TENSOR)
    traits = traits_def(Elementwise(), Pure(), Verified())
    custom_directives = (Direction, RankedTensorType)
    assembly_format = (
        "$input `allowed_direction` `` `=` `` custom<Direction>($allowed_direction) attr-dict `:` "
        "custom<RankedTensorType>(type($input))"
    )

    def __init__(self, value: SSAValue, direction: PropagationDirection):
        properties = {"allowed_direction": direction_attr(direction)}
        super().__init__(operands=[value], properties=properties, result_types=[value.type])

    @property
    def direction(self) -> PropagationDirection:
        """The direction in which shardings may propagate."""
        return PropagationDirection(self.allowed_direction.value.data)


@irdl_op_definition
class DataFlowEdgeOp(IRDLOperation):
    """Holds the sharding of a data-flow edge; its operand, which has no other use, owns the edge.

    `%1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>`; see `sdy.dialect.interfaces`.
    """

    name = "sdy.data_flow_edge"
    input = operand_def(SAME_SHAPED)
    sharding = opt_prop_def(TensorShardingAttr)
    result = result_def(SAME_SHAPED)
    traits = traits_def(Verified())
    custom_directives = (ShapedType,)
    assembly_format = "$input (`sharding` `` `=` `` $sharding^)? attr-dict `:` custom<ShapedType>(type($result))"

    def __init__(self, value: SSAValue, sharding: TensorSharding | None = None):
        properties = {} if sharding is None else {"sharding": TensorShardingAttr.of(sharding)}
        # Created for each value that enters or leaves a region; faster than the IRDL constructor.
        Operation.__init__(self, operands=[value], properties=properties, result_types=[value.type])


@irdl_op_definition
class FuncDataFlowEdgeOp(IRDLOperation):
    """A data-flow edge between calls and their callee, at an argument of the callee or a result of a call."""

    name = "sdy.func_data_flow_edge"
    input = operand_def(SAME_SHAPED)
    result = result_def(SAME_SHAPED)
    traits = traits_def(Verified())
    custom_directives = (ShapedType,)
    assembly_format = "$input attr-dict `:` custom<ShapedType>(type($result))"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Terminator of the body of a computation."""

    name = "sdy.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), ReturnLike(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@irdl_op_definition
class NamedComputationOp(IRDLOperation):
    """A named, inlined part of the program; shardings propagate through it as if it were transparent.

    `%1 = sdy.named_computation<"f">(%0) in_shardings=[<@mesh, [{"x"}]>] (%arg: tensor<8xf32>) { ... } : ...`
    """

    name = "sdy.named_computation"
    computation_name = prop_def(StringAttr, prop_name="name")
    inputs = var_operand_def()
    in_shardings = opt_prop_def(TensorShardingPerValueAttr)
    out_shardings = opt_prop_def(TensorShardingPerValueAttr)
    outputs = var_result_def()
    body = region_def("single_block")
    traits = traits_def(
        RecursiveMemoryEffect(),
        RecursivelySpeculatable(),
        IsolatedFromAbove(),
        SingleBlockImplicitTerminator(ReturnOp),
        ComputationDataFlow(),
        Verified(),
    )
    custom_directives = (FunctionalType, Name, Shardings, SingleBlockRegionNoBlockId)
    assembly_format = (
        "`<` custom<Name>($name) `>` `` `(` $inputs `)` (`in_shardings` `` `=` `` custom<Shardings>($in_shardings)^)? "
        "(`out_shardings` `` `=` `` custom<Shardings>($out_shardings)^)? "
        "custom<SingleBlockRegionNoBlockId>($body) attr-dict `:` custom<FunctionalType>(type($inputs), type($outputs))"
    )

    def __init__(
        self,
        name: str,
        inputs: Sequence[SSAValue],
        body: Region,
        result_types: Sequence[Attribute],
        in_shardings: Sequence[TensorSharding] | None = None,
        out_shardings: Sequence[TensorSharding] | None = None,
    ):
        properties: dict[str, Attribute | None] = {
            "name": StringAttr(name),
            "in_shardings": None if in_shardings is None else TensorShardingPerValueAttr(tuple(in_shardings)),
            "out_shardings": None if out_shardings is None else TensorShardingPerValueAttr(tuple(out_shardings)),
        }
        super().__init__(operands=[inputs], properties=properties, result_types=[result_types], regions=[body])


@irdl_op_definition
class ManualComputationOp(IRDLOperation):
    """A body that is a per-device program along the `manual_axes`.

    `%1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
    (%arg: tensor<4xf32>) { ... } : (tensor<8xf32>) -> tensor<8xf32>`: inside, tensors are split by the manual axes.
    """

    name = "sdy.manual_computation"
    tensors = var_operand_def()
    in_shardings = prop_def(TensorShardingPerValueAttr)
    out_shardings = prop_def(TensorShardingPerValueAttr)
    manual_axes = prop_def(ManualAxesAttr)
    outputs = var_result_def()
    body = region_def("single_block")
    traits = traits_def(
        RecursiveMemoryEffect(),
        IsolatedFromAbove(),
        SingleBlockImplicitTerminator(ReturnOp),
        ManualComputationDataFlow(),
        Verified(),
    )
    custom_directives = (FunctionalType, Shardings, SingleBlockRegionNoBlockId)
    assembly_format = (
        "`(` $tensors `)` `in_shardings` `` `=` `` custom<Shardings>($in_shardings) "
        "`out_shardings` `` `=` `` custom<Shardings>($out_shardings) `manual_axes` `` `=` `` $manual_axes "
        "custom<SingleBlockRegionNoBlockId>($body) attr-dict `:` custom<FunctionalType>(type($tensors), type($outputs))"
    )

    def __init__(
        self,
        tensors: Sequence[SSAValue],
        body: Region,
        result_types: Sequence[Attribute],
        in_shardings: Sequence[TensorSharding],
        out_shardings: Sequence[TensorSharding],
        manual_axes: Sequence[str],
    ):
        properties: dict[str, Attribute | None] = {
            "in_shardings": TensorShardingPerValueAttr(tuple(in_shardings)),
            "out_shardings": TensorShardingPerValueAttr(tuple(out_shardings)),
            "manual_axes": ManualAxesAttr(tuple(manual_axes)),
        }
        super().__init__(operands=[tensors], properties=properties, result_types=[result_types], regions=[body])
