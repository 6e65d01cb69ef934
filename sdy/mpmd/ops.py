"""Operations of the MPMD dialect.

A user's program has named computations, named tensors, calls, loops, broadcasts and reductions over plain tensors.
Import assigns each to a mesh: fragments compute on mesh tensors, transfers move them. Export turns each fragment into a
function of its own and a fragment call.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue, Use
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
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
)
from xdsl.utils.hints import isa

from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.data_flow import ComputationDataFlow
from sdy.dialect.directives import FunctionalType, SingleBlockRegionNoBlockId
from sdy.dialect.interfaces import Elementwise, ShardableDataFlow, Verified
from sdy.ir.constraints import Described, either
from sdy.mpmd.attribute_syntax import UserOrigin
from sdy.mpmd.attributes import ReductionAttr, UserOriginAttr
from sdy.mpmd.directives import (
    CarriedTypes,
    MeshAndOrigin,
    ReductionInBrackets,
    ShortOrigin,
    StageAndShardings,
)
from sdy.mpmd.mesh_tensor import MESH_TENSOR, MeshTensorType
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.tensor_types import ANY_TENSOR, TENSOR_OR_TOKEN, TOKEN_TYPE
from sdy.text.printing.names import AsmNames

_MESH_TENSOR_OR_TOKEN = either(MESH_TENSOR, TOKEN_TYPE)
_TENSOR_OR_MESH_TENSOR = either(ANY_TENSOR, MESH_TENSOR)
_SAME_TENSOR = VarConstraint("T", ANY_TENSOR)
_UI32 = IntegerType(32, Signedness.UNSIGNED)


def _is_ui32(attribute: Attribute) -> bool:
    return isa(attribute, IntegerAttr[IntegerType]) and attribute.type == _UI32


_UI32_ATTR = cast(AttrConstraint[IntegerAttr[IntegerType]], Described("32-bit unsigned integer attribute", _is_ui32))


class IndexName(AsmNames):
    """`%index`: the name of a loop's last block argument."""

    def block_argument_names(self, region: Region) -> Mapping[int, str]:
        """Return the name of the last argument."""
        return {len(region.block.args) - 1: "index"}


class FragmentDataFlow(ComputationDataFlow):
    """Data-flow edges of a fragment: from operands to block arguments, from returned values to results."""

    def keeps_owner_shardings_divisible(self, op: Operation) -> bool:
        return True


class ForDataFlow(ShardableDataFlow):
    """One data-flow edge per carried value, owned by the result; the index has none."""

    def edge_sources(self, op: Operation, owner: SSAValue) -> Sequence[Use]:
        assert isinstance(owner, OpResult)
        terminator = op.regions[0].block.last_op
        assert terminator is not None
        return Use(op, owner.index), Use(terminator, owner.index)

    def edge_owner_from_target(self, op: Operation, target: SSAValue) -> SSAValue:
        assert isinstance(target, OpResult | BlockArgument)
        return op.results[target.index]

    def non_owner_targets(self, op: Operation, owner: SSAValue) -> Sequence[SSAValue]:
        assert isinstance(owner, OpResult)
        return (op.regions[0].block.args[owner.index],)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Terminator of the body of an MPMD operation."""

    name = "mpmd.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), ReturnLike(), Pure())

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])

    @classmethod
    def parse(cls, parser: Parser) -> "ReturnOp":
        """Parse `{attributes} %0, %1 : types`."""
        attributes = parser.parse_optional_attr_dict()
        start = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        types: list[Attribute] = []
        if operands:
            parser.parse_punctuation(":")
            types += parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = parser.resolve_operands(operands or [], types, start)
        return cls.create(operands=values, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print `{attributes} %0, %1 : types`; without operands, the space before them remains, as in MLIR."""
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_ssa_value)
        if self.values:
            printer.print_string(" : ")
            printer.print_list(self.values.types, printer.print_attribute)


@define
class NamedComputationOp(IRDLOperation):
    """A named part of a user's program, which can be assigned to a mesh and a stage.

    `%1 = mpmd.named_computation<"f"(1)> (%0) (%arg: tensor<8xf32>) { ... } : (tensor<8xf32>) -> tensor<8xf32>`
    """

    name = "mpmd.named_computation"
    tensors = var_operand_def(TENSOR_OR_TOKEN)
    origin = prop_def(UserOriginAttr)
    outputs = var_result_def(TENSOR_OR_TOKEN)
    body = region_def("single_block")
    traits = traits_def(
        RecursiveMemoryEffect(),
        RecursivelySpeculatable(),
        IsolatedFromAbove(),
        SingleBlockImplicitTerminator(ReturnOp),
        Verified(),
    )
    custom_directives = (FunctionalType, ShortOrigin, SingleBlockRegionNoBlockId)
    assembly_format = (
        "`<` custom<ShortOrigin>($origin) `>` `(` $tensors `)` attr-dict custom<SingleBlockRegionNoBlockId>($body) `:` "
        "custom<FunctionalType>(type($tensors), type($outputs))"
    )


@irdl_op_definition
class NamedTensorOp(IRDLOperation):
    """A name by which a value can be assigned to a mesh: `%1 = mpmd.named_tensor %0 name="x" : tensor<8xf32>`."""

    name = "mpmd.named_tensor"
    tensor = operand_def(_SAME_TENSOR)
    tensor_name = prop_def(StringAttr, prop_name="name")
    result = result_def(_SAME_TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "$tensor `name` `` `=` `` $name attr-dict `:` type($result)"


@define
class ForOp(IRDLOperation):
    """A loop with a constant number of iterations, whose index is the body's last argument.

    `%1 = mpmd.for (%0) {iterations = 4 : ui32} (%arg: tensor<8xf32>, %index: tensor<ui32>) { ... } : tensor<8xf32>`
    """

    name = "mpmd.for"
    tensors = var_operand_def()
    iterations = prop_def(_UI32_ATTR)
    unroll_factor = opt_prop_def(_UI32_ATTR)
    outputs = var_result_def()
    body = region_def("single_block")
    traits = traits_def(
        RecursiveMemoryEffect(),
        RecursivelySpeculatable(),
        SingleBlockImplicitTerminator(ReturnOp),
        IndexName(),
        ForDataFlow(),
        Verified(),
    )
    custom_directives = (CarriedTypes, SingleBlockRegionNoBlockId)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "` ` `(` $tensors `)` attr-dict custom<SingleBlockRegionNoBlockId>($body) `:` "
        "custom<CarriedTypes>(type($tensors), type($outputs))"
    )


@define
class FragmentOp(IRDLOperation):
    """A computation on a mesh of the topology, which becomes an SPMD program of its own.

    `%1 = mpmd.fragment<mesh="m1", origin=["f"], stage=0> (%0) (%arg: tensor<8xf32>) { ... }
    : (!mpmd.mesh_tensor<"m1", tensor<8xf32>>) -> !mpmd.mesh_tensor<"m1", tensor<8xf32>>`
    """

    name = "mpmd.fragment"
    inputs = var_operand_def(_MESH_TENSOR_OR_TOKEN)
    origin = prop_def(ArrayAttr[UserOriginAttr])
    mesh_name = prop_def(StringAttr)
    stage_id = opt_prop_def(IntegerAttr[I64])
    in_shardings = opt_prop_def(TensorShardingPerValueAttr)
    out_shardings = opt_prop_def(TensorShardingPerValueAttr)
    outputs = var_result_def(_MESH_TENSOR_OR_TOKEN)
    body = region_def("single_block")
    traits = traits_def(
        RecursiveMemoryEffect(),
        RecursivelySpeculatable(),
        IsolatedFromAbove(),
        SingleBlockImplicitTerminator(ReturnOp),
        HasParent(FuncOp, ForOp),
        FragmentDataFlow(),
        Verified(),
    )
    custom_directives = (FunctionalType, MeshAndOrigin, SingleBlockRegionNoBlockId, StageAndShardings)
    assembly_format = (
        "`<` custom<MeshAndOrigin>($mesh_name, $origin) "
        "custom<StageAndShardings>($stage_id, $in_shardings, $out_shardings) `>` "
        "`(` $inputs `)` attr-dict custom<SingleBlockRegionNoBlockId>($body) `:` "
        "custom<FunctionalType>(type($inputs), type($outputs))"
    )


@define
class FragmentCallOp(IRDLOperation):
    """A call of the function that a fragment has become.

    `%1 = mpmd.fragment_call<mesh="m1", origin=["f"]> @f(%0) : (!mpmd.mesh_tensor<"m1", tensor<8xf32>>) -> ...`
    """

    name = "mpmd.fragment_call"
    tensors = var_operand_def(MESH_TENSOR)
    origin = prop_def(ArrayAttr[UserOriginAttr])
    mesh_name = prop_def(StringAttr)
    callee = prop_def(FlatSymbolRefAttrConstr)
    outputs = var_result_def(MESH_TENSOR)
    traits = traits_def(HasParent(FuncOp), Verified())
    custom_directives = (FunctionalType, MeshAndOrigin)
    assembly_format = (
        "`<` custom<MeshAndOrigin>($mesh_name, $origin) `>` $callee `(` $tensors `)` attr-dict `:` "
        "custom<FunctionalType>(type($tensors), type($outputs))"
    )

    def __init__(
        self,
        mesh: str,
        callee: str,
        tensors: Sequence[SSAValue],
        result_types: Sequence[MeshTensorType],
        origin: Sequence[UserOrigin] = (),
    ):
        properties: dict[str, Attribute | None] = {
            "mesh_name": StringAttr(mesh),
            "callee": SymbolRefAttr(callee),
            "origin": ArrayAttr(map(UserOriginAttr, origin)),
        }
        super().__init__(operands=[tensors], properties=properties, result_types=[result_types])


@define
class TransferOp(IRDLOperation):
    """The operand on another mesh, or with another sharding or in another memory.

    `%1 = mpmd.transfer %0 : (!mpmd.mesh_tensor<"m1", tensor<8xf32>>) -> !mpmd.mesh_tensor<"m2", tensor<8xf32>>`
    """

    name = "mpmd.transfer"
    tensor = operand_def(MESH_TENSOR)
    result = result_def(MESH_TENSOR)
    traits = traits_def(Elementwise(), Pure(), HasParent(FuncOp), Verified())
    custom_directives = (FunctionalType,)
    assembly_format = "attr-dict $tensor `:` custom<FunctionalType>(type($tensor), type($result))"

    def __init__(self, tensor: SSAValue, result_type: Attribute):
        super().__init__(operands=[tensor], result_types=[result_type])


@define
class AssignOp(IRDLOperation):
    """A plain tensor as a replicated mesh tensor; exists only during import.

    `%1 = mpmd.assign {origin = "f"} %0 : (tensor<8xf32>) -> !mpmd.mesh_tensor<"m1", tensor<8xf32>>`
    """

    name = "mpmd.assign"
    tensor = operand_def(ANY_TENSOR)
    origin = opt_prop_def(StringAttr)
    result = result_def(MESH_TENSOR)
    traits = traits_def(Pure(), HasParent(FuncOp, ForOp), Verified())
    custom_directives = (FunctionalType,)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict $tensor `:` custom<FunctionalType>(type($tensor), type($result))"


@define
class UnassignOp(IRDLOperation):
    """A replicated mesh tensor as a plain tensor; exists only during import."""

    name = "mpmd.unassign"
    tensor = operand_def(MESH_TENSOR)
    origin = opt_prop_def(StringAttr)
    result = result_def(ANY_TENSOR)
    traits = traits_def(Pure(), HasParent(FuncOp, ForOp), Verified())
    custom_directives = (FunctionalType,)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict $tensor `:` custom<FunctionalType>(type($tensor), type($result))"


@define
class CallOp(IRDLOperation):
    """A call that stays a call until meshes are assigned, such as that of a microbatch.

    `%1 = mpmd.call @f(%0) {call_counter = 0 : ui32} : (tensor<8xf32>) -> tensor<8xf32>`
    """

    name = "mpmd.call"
    tensors = var_operand_def(_TENSOR_OR_MESH_TENSOR)
    callee = prop_def(FlatSymbolRefAttrConstr)
    outputs = var_result_def(_TENSOR_OR_MESH_TENSOR)
    traits = traits_def(Verified())
    custom_directives = (FunctionalType,)
    assembly_format = "$callee `(` $tensors `)` attr-dict `:` custom<FunctionalType>(type($tensors), type($outputs))"


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """A value that any mesh may use, and is sent to those that do: `%1 = mpmd.broadcast %0 : tensor<8xf32>`."""

    name = "mpmd.broadcast"
    tensor = operand_def(_SAME_TENSOR)
    result = result_def(_SAME_TENSOR)
    traits = traits_def(Elementwise(), Pure())
    assembly_format = "attr-dict $tensor `:` type($tensor)"

    def __init__(self, tensor: SSAValue):
        super().__init__(operands=[tensor], result_types=[tensor.type])


@define
class ReduceOp(IRDLOperation):
    """A reduction of values on several meshes, which any mesh may use.

    `%2 = mpmd.reduce<add> %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>`
    """

    name = "mpmd.reduce"
    tensors = var_operand_def(_SAME_TENSOR)
    reduction = prop_def(ReductionAttr, default_value=ReductionAttr("none"))
    result = result_def(_SAME_TENSOR)
    traits = traits_def(Elementwise(), Pure(), Verified())
    custom_directives = (FunctionalType, ReductionInBrackets)
    assembly_format = (
        "custom<ReductionInBrackets>($reduction) attr-dict $tensors `:` "
        "custom<FunctionalType>(type($tensors), type($result))"
    )
