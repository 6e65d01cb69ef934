"""The SDY dialect: parsing and printing, stored shardings, data-flow edges, and errors."""

from typing import Any, cast

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

import sdy
from oracle import oracle
from sdy.axes import AxisRef
from sdy.diagnostics import DiagnosticError
from sdy.dialect import SDY
from sdy.dialect.attributes import OpShardingRuleAttr, TensorShardingAttr, ValueAttr
from sdy.dialect.constants import constant_number, constant_value, is_constant
from sdy.dialect.data_flow import with_manual_axes, without_manual_axes
from sdy.dialect.interfaces import CHECKS, ShardableDataFlow, Verified
from sdy.dialect.meshes import common_mesh, mesh_of, named_meshes
from sdy.dialect.ops import DataFlowEdgeOp, ManualComputationOp, NamedComputationOp
from sdy.dialect.rule_syntax import rule_text
from sdy.dialect.sharding_checks import sharding_problem
from sdy.dialect.sharding_syntax import sharding_text
from sdy.dialect.shardings import (
    data_flow_edge_of,
    func_arg_sharding,
    func_result_sharding,
    get_sharding,
    has_result_shardings,
    result_shardings,
    set_func_arg_sharding,
    set_func_result_sharding,
    set_sharding,
    shardable_value,
)
from sdy.mesh import Mesh
from sdy.rule import OpShardingRule
from sdy.sharding import DimSharding, TensorSharding

X, Y = AxisRef("x"), AxisRef("y")
ON_X = TensorSharding("mesh", (DimSharding((X,)),))
ON_Y = TensorSharding("mesh", (DimSharding((Y,)),))
OPEN = TensorSharding.replicated_open("mesh", 1)

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def attribute(text: str) -> object:
    """Parse an attribute and return its value."""
    module = sdy.parse(f"module attributes {{test.attribute = {text}}} {{}}")
    found = module.attributes["test.attribute"]
    assert isinstance(found, ValueAttr)
    return cast(ValueAttr[object], found).data


def operations(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def only(module: ModuleOp, name: str) -> Operation:
    (op,) = operations(module, name)
    return op


def function(module: ModuleOp) -> FuncOp:
    return cast(FuncOp, only(module, "func.func"))


# Text


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ("x=8", "expected the size of each mesh axis, such as .*, not 'x=8'"),
        ({"x": 4, "y": 0}, 'mesh axis "y" has size 0; a size is at least 1'),
    ],
)
def test_a_mesh_has_axes_with_positive_sizes(axes: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Mesh.of(axes)


def test_a_sharding_is_read_as_its_value() -> None:
    value = attribute('#sdy.sharding<@mesh, [{"x":(1)2, ?}p1, {}], replicated={"x":(2)2}, unreduced=max{"y"}>')
    assert value == TensorSharding(
        "mesh",
        (DimSharding((AxisRef("x", 1, 2),), is_closed=False, priority=1), DimSharding()),
        replicated=(AxisRef("x", 2, 2),),
        unreduced=(Y,),
        reduction="max",
    )


@pytest.mark.parametrize(
    "text",
    [
        "<@mesh, []>",
        '<@mesh, [{"x"}, {?}, {}]>',
        '<@mesh, [{"x":(1)2, "y", ?}p0, {?}p12]>',
        '<@mesh, [{}], replicated={"x"}, unreduced={"y"}>',
        '<@mesh, [{}], unreduced=min{"y"}>',
        '<mesh<["x"=4], device_ids=[3, 2, 1, 0]>, [{"x"}]>',
        "<mesh<[], device_ids=[1]>, []>",
        '<@"two words", [{"an axis"}]>',
        '<@mesh, [{"\\22quoted\\22\\0A"}]>',
    ],
)
def test_a_sharding_keeps_its_text(text: str) -> None:
    value = cast(TensorSharding, attribute(f"#sdy.sharding{text}"))
    assert sharding_text(value) == text
    assert str(TensorShardingAttr(value)) == f"#sdy.sharding{text}"


def test_mlir_reads_a_sharding_as_we_do() -> None:
    text = 'module attributes {test.a = #sdy.sharding<mesh<["x y"=4, "\\22"=2]>, [{"x y":(2)2,?}p3,{  "\\22"}]>} {}'
    assert sdy.format(sdy.parse(text)).strip() == oracle(text).strip()


def test_a_rule_is_read_as_its_value() -> None:
    value = attribute("#sdy.op_sharding_rule<([i, k],[k, j])->([ij]) {i=8, j=4, k=2} reduction={k}, custom>")
    assert value == OpShardingRule(
        (8, 4, 2), (((0,), (2,)), ((2,), (1,))), (((0, 1),),), reduction=(2,), is_custom=True
    )


def test_a_rule_names_its_factors_beyond_the_alphabet() -> None:
    factors = tuple((factor,) for factor in range(30))
    rule = OpShardingRule((2,) * 30, (factors,), ((*factors[:17], tuple(range(17, 30))),))
    text = rule_text(rule)
    assert "y, zz_1z_2z_3z_4z_5z_6z_7z_8z_9z_10z_11z_12])" in text
    assert "z_12=2}>" in text
    assert attribute(f"#sdy.op_sharding_rule{text}") == rule
    assert str(OpShardingRuleAttr(rule)) == f"#sdy.op_sharding_rule{text}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('#sdy.sharding<@mesh, [{"x"}phigh]>', "expecting priority in format 'p<number>', got: phigh"),
        ('#sdy.sharding<@mesh, [{"x"}p01]>', "priorities with leading zeros are not allowed, got: p01"),
        ('#sdy.sharding<@mesh, [{"x"}p9999999999999999999]>', "expecting integer priority"),
        ('#sdy.sharding<@mesh, [{"x"}], other={"y"}>', "expected valid named axis list after comma"),
        ("#sdy.sharding<@mesh, [{x}]>", "expected string"),
        ('#sdy.sharding<@mesh, [{"x":(1)99999999999999999999}]>', "integer value too large"),
        ('#sdy.mesh<["x"=0]>', "axis size must be at least 1, got: 0"),
        ('#sdy.mesh<["x"=2], device_ids=[0, 2]>', "sorted device ids must be iota(product(axes)), got: 0, 2"),
        ("#sdy.mesh<[], device_ids=[0, 1]>", "axes is empty and device_ids has more than one element"),
        ("#sdy.op_sharding_rule<([a])->([i]) {i=2}>", "expecting symbol from 'i' to 'z'. Received: 'a'"),
        ("#sdy.op_sharding_rule<([z_])->([i]) {i=2}>", "expecting integer after 'z_'"),
        ("#sdy.op_sharding_rule<([z_01])->([i]) {i=2}>", "without leading zeros"),
        ("#sdy.op_sharding_rule<([i])->([i]) {i=2, ij=2}>", "Expecting factor index symbol 'j', received: 'i'"),
        (
            '#sdy.propagation_edges<[{step-1 = [{"x" = operand-0 -> [result-0]}]}, '
            '{step-1 = [{"y" = operand-0 -> [result-0]}]}]>',
            "duplicate step index: 1",
        ),
    ],
)
def test_a_wrong_attribute_is_refused(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        attribute(text)
    assert message in caught.value.message


# Storage of shardings

PLACES = (
    MESH
    + """
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<8xf32>
  %2 = sdy.all_gather [{"y"}] %1 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %3:2 = stablehlo.optimization_barrier %2, %arg1 : tensor<8xf32>, tensor<8xf32>
  %4 = sdy.data_flow_edge %3#0 sharding=<@mesh, [{"x"}]> : tensor<8xf32>
  return %4, %3#1 : tensor<8xf32>, tensor<8xf32>
}
"""
)


def test_a_functions_shardings() -> None:
    func = function(sdy.parse(PLACES))
    assert [func_arg_sharding(func, index) for index in range(2)] == [ON_X, None]
    assert [func_result_sharding(func, index) for index in range(2)] == [None, ON_Y]
    set_func_arg_sharding(func, 1, ON_Y)
    assert get_sharding(func.args[1]) == ON_Y
    set_sharding(func.args[0], ON_Y)
    assert func_arg_sharding(func, 0) == ON_Y
    set_func_result_sharding(func, 1, None)
    assert func.res_attrs is None


def test_a_results_sharding_is_where_its_operation_keeps_it() -> None:
    module = sdy.parse(PLACES)
    for name, sharding in (("sdy.reshard", ON_Y), ("sdy.all_gather", TensorSharding.replicated_closed("mesh", 1))):
        result = only(module, name).results[0]
        assert get_sharding(result) == sharding
        set_sharding(result, ON_X)
        assert get_sharding(result) == ON_X
        assert not has_result_shardings(only(module, name))

    negate = only(module, "stablehlo.negate")
    assert get_sharding(negate.results[0]) is None
    set_sharding(negate.results[0], ON_X)
    assert result_shardings(negate) == (ON_X,)


def test_the_edge_keeps_the_sharding_of_its_targets() -> None:
    module = sdy.parse(PLACES)
    barrier, edge = only(module, "stablehlo.optimization_barrier"), only(module, "sdy.data_flow_edge")
    with_edge, without_edge = barrier.results
    assert data_flow_edge_of(with_edge) is edge
    assert shardable_value(with_edge) is edge.results[0]
    assert get_sharding(with_edge) == ON_X
    set_sharding(with_edge, ON_Y)
    assert get_sharding(edge.results[0]) == ON_Y
    assert not has_result_shardings(barrier)

    assert data_flow_edge_of(without_edge) is None
    set_sharding(without_edge, ON_X)
    assert result_shardings(barrier) == (OPEN, ON_X)


def test_a_block_argument_that_no_edge_reaches_has_no_sharding() -> None:
    module = sdy.parse(
        """
        func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<f32>) -> tensor<f32> {
          %0 = "stablehlo.reduce"(%arg0, %arg1) <{dimensions = array<i64: 0>}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }
        """
    )
    argument = only(module, "stablehlo.reduce").regions[0].block.args[0]
    assert shardable_value(argument) is None
    set_sharding(argument, TensorSharding("mesh"))
    assert get_sharding(argument) is None


# Data-flow edges

MANUAL = (
    MESH
    + """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x", "y"}]>]
      out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
    %1 = stablehlo.negate %arg1 : tensor<2xf32>
    sdy.return %1 : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
)


def flow_of(op: Operation) -> ShardableDataFlow:
    flow = op.get_trait(ShardableDataFlow)
    assert flow is not None
    return flow


def test_manual_axes_are_not_seen_inside() -> None:
    outside = TensorSharding("mesh", (DimSharding((X, Y)),), replicated=(AxisRef("z"),))
    assert without_manual_axes(outside, ["x", "z"]) == ON_Y
    inside = TensorSharding("mesh", (DimSharding((AxisRef("w"),), is_closed=False),))
    assert with_manual_axes(outside, inside, ["x", "z"]) == TensorSharding(
        "mesh", (DimSharding((X, AxisRef("w")), is_closed=False),), replicated=(AxisRef("z"),)
    )


def test_the_edges_of_a_manual_computation() -> None:
    op = only(sdy.parse(MANUAL), "sdy.manual_computation")
    assert isinstance(op, ManualComputationOp)
    flow, argument, result = flow_of(op), op.body.block.args[0], op.outputs[0]
    assert get_sharding(argument) == ON_Y
    assert get_sharding(result) == TensorSharding("mesh", (DimSharding((X,), is_closed=False),))

    (source,) = flow.edge_sources(op, argument)
    assert source.operation.operands[source.index] is op.tensors[0]
    (source,) = flow.edge_sources(op, result)
    assert source.operation.name == "sdy.return"

    assert flow.outside_sharding(op, argument, ON_Y) == op.in_shardings.data[0]
    assert flow.inside_sharding(op, result, ON_X) == TensorSharding.replicated_closed("mesh", 1)
    set_sharding(argument, OPEN)
    assert op.in_shardings.data[0] == TensorSharding("mesh", (DimSharding((X,), is_closed=False),))
    assert flow.keeps_owner_shardings_divisible(op)


def test_the_edges_of_a_named_computation() -> None:
    module = sdy.parse(
        MESH
        + """
        func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
          %0:2 = sdy.named_computation<"f">(%arg0, %arg1) (%a: tensor<8xf32>, %b: tensor<8xf32>) {
            sdy.return %b, %a : tensor<8xf32>, tensor<8xf32>
          } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
          return %0#0 : tensor<8xf32>
        }
        """
    )
    op = only(module, "sdy.named_computation")
    assert isinstance(op, NamedComputationOp)
    argument, result = op.body.block.args[1], op.outputs[0]
    assert get_sharding(argument) is None
    set_sharding(argument, ON_X)
    assert op.in_shardings is not None
    assert op.in_shardings.data == (OPEN, ON_X)
    set_sharding(result, ON_Y)
    assert get_sharding(result) == ON_Y
    assert not flow_of(op).keeps_owner_shardings_divisible(op)
    module.verify()


def test_the_edges_of_a_loop_bind_its_regions() -> None:
    module = sdy.parse(
        """
        func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
          %0:2 = stablehlo.while(%a = %arg0, %i = %arg1) : tensor<8xf32>, tensor<i32>
            cond {
            %1 = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          } do {
            %1 = stablehlo.negate %a : tensor<8xf32>
            stablehlo.return %1, %i : tensor<8xf32>, tensor<i32>
          }
          return %0#0 : tensor<8xf32>
        }
        """
    )
    loop = only(module, "stablehlo.while")
    flow, owner = flow_of(loop), loop.results[0]
    targets: list[SSAValue] = [region.block.args[0] for region in loop.regions]
    assert list(flow.non_owner_targets(loop, owner)) == targets
    assert all(flow.edge_owner_from_target(loop, target) is owner for target in targets)
    assert [source.operation.name for source in flow.edge_sources(loop, owner)] == [
        "stablehlo.while",
        "stablehlo.return",
    ]
    set_sharding(targets[1], ON_X)
    assert get_sharding(targets[0]) == ON_X
    assert result_shardings(loop)[0] == ON_X


# Meshes


def test_meshes_are_found_by_name_or_inlined() -> None:
    module = sdy.parse(PLACES)
    mesh = Mesh.of({"x": 4, "y": 2})
    inlined = Mesh.of({"z": 2})
    assert named_meshes(module) == {"mesh": mesh}
    assert mesh_of(ON_X, only(module, "sdy.reshard")) == mesh
    assert mesh_of(TensorSharding(inlined), module) == inlined
    assert common_mesh([None, TensorSharding(Mesh()), ON_X], module) == mesh
    assert common_mesh([ON_X, TensorSharding(inlined)], module) is None
    with pytest.raises(DiagnosticError, match="unknown mesh: @nowhere"):
        mesh_of(TensorSharding("nowhere"), module)


# Constants


@pytest.mark.parametrize(
    ("made", "number"),
    [
        ("stablehlo.constant dense<7> : tensor<2xi32>", 7),
        ("sdy.constant dense<7> : tensor<2xi32>", 7),
        ("arith.constant dense<7.5> : tensor<2xf32>", 7.5),
        ("stablehlo.constant dense<[1, 2]> : tensor<2xi32>", None),
        ("stablehlo.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", None),
        ("arith.constant 7 : i32", None),
    ],
)
def test_a_constant_of_any_dialect_says_which_number_its_elements_are(made: str, number: float | None) -> None:
    value = operations(sdy.parse(f"%0 = {made}"), made.split()[0])[0].results[0]
    assert is_constant(value)
    assert constant_value(value) is not None
    assert constant_number(value) == number


def test_an_iota_is_no_constant() -> None:
    value = only(sdy.parse("%0 = stablehlo.iota dim = 0 : tensor<4xi32>"), "stablehlo.iota").results[0]
    assert not is_constant(value)
    assert constant_value(value) is None


# Errors


def test_each_operation_that_is_to_be_checked_has_a_check() -> None:
    checked = {op for op in CHECKS if op.name.startswith("sdy.")}  # other dialects add theirs
    assert {op for op in SDY.operations if op.has_trait(Verified)} == checked


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ('[{"x"}]', "sharding doesn't match tensor rank: 1 != 2"),
        ('[{"z"}, {}]', 'unknown axis name: "z"'),
        ('[{"x"}, {"x"}]', 'duplicate axis ref: "x"'),
        ('[{"x":(1)1}, {}]', 'sub-axis sizes must be greater than 1: "x":(1)1'),
        ('[{"x":(0)2}, {}]', 'sub-axis pre-size must be at least 1: "x":(0)2'),
        ('[{"x":(1)4}, {}]', 'sub-axis size is equal to the full axis size: "x":(1)4'),
        ('[{"x":(1)3}, {}]', 'sub-axis next pre-size 3 doesn\'t divide the size of the full axis 4: "x":(1)3'),
        ('[{"x"}, {"y"}]', None),
        ('[{"x":(1)2, ?}p1, {"x":(2)2}], unreduced={"y"}', None),
    ],
)
def test_shardings_are_checked_as_mlir_does(dims: str, message: str | None) -> None:
    text = MESH + f"func.func @f(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}) {{ return }}"
    if message is None:
        sdy.parse(text)
        return
    with pytest.raises(DiagnosticError) as caught:
        sdy.parse(text)
    assert caught.value.message == f"'func.func' op arg 0 - {message}"


def test_divisibility_is_checked_where_it_is_asked_for() -> None:
    func = function(sdy.parse(PLACES))
    type_ = func.function_type.inputs.data[0]
    mesh = Mesh.of({"x": 3})
    assert sharding_problem(ON_X, type_, mesh) is None
    assert sharding_problem(ON_X, type_, mesh, divisible=True) == (
        "dim 0 with size 8 is not divisible by its sharded size 3"
    )


def test_an_edge_is_made_for_an_owner() -> None:
    func = function(sdy.parse(PLACES))
    edge = DataFlowEdgeOp(func.args[1], ON_X)
    assert edge.sharding is not None
    assert edge.sharding.data == ON_X
    assert edge.result.type == func.args[1].type
