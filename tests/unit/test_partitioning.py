"""Conversion to the program of one device: its operations, and equality of its results."""

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from partitioned_programs import Argument, D, M, assert_same_as_whole, lower
from samples import covering
from sdy.axes import AxisRef
from sdy.device_groups import device_groups, shard_indices
from sdy.diagnostics import DiagnosticError, capture
from sdy.mesh import Mesh
from sdy.passes.driver import partition, propagate
from sdy.passes.interpret import interpret
from sdy.passes.jax.api.compile import compile
from sdy.passes.jax.hlo_collectives import collectives
from sdy.passes.partitioning.convert_global_to_local import ConvertGlobalToLocalPass
from sdy.text import context, parse
from sdy_collectives import COLLECTIVES, DEVICE_ORDERS, convert

X, Y, Z = AxisRef("x"), AxisRef("y"), AxisRef("z")
MESH = Mesh.of({"x": 2, "y": 4, "z": 2})


def test_groups_are_in_the_order_of_their_axes():
    assert device_groups([AxisRef("y", 1, 2)], Mesh.of({"x": 2, "y": 4})) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert device_groups([Z, X], MESH)[:2] == [[0, 8, 1, 9], [2, 10, 3, 11]]
    assert device_groups([], Mesh.of({"x": 2})) == [[0], [1]]
    assert device_groups([X], Mesh.of({"x": 2, "y": 2}, [3, 1, 0, 2])) == [[3, 0], [1, 2]]


def test_shard_indices_count_along_axes_major_to_minor():
    assert shard_indices([X, AxisRef("y", 2, 2)], MESH) == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]
    assert shard_indices([X], Mesh.of({"x": 2, "y": 2}, [3, 1, 0, 2])) == [1, 0, 1, 0]


@covering
@pytest.mark.parametrize("order", DEVICE_ORDERS.values(), ids=DEVICE_ORDERS)
@pytest.mark.parametrize(("before", "collective", "after"), COLLECTIVES.values(), ids=COLLECTIVES)
def test_collective_changes_nothing_but_the_layout(before: str, collective: str, after: str, order: str):
    text = f"""
      sdy.mesh @mesh = <["x"=2, "y"=4]{order}>
      func.func @main(%arg0: tensor<8x16x4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{before}]>}})
          -> (tensor<8x16x4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{after}]>}}) {{
        %0 = {collective} %arg0 out_sharding=<@mesh, [{after}]> : tensor<8x16x4x8xf32>
        return %0 : tensor<8x16x4x8xf32>
      }}"""
    assert_same_as_whole(parse(text), convert(text))


REDUCTIONS = {
    "all_reduce": ('sdy.all_reduce {"y"}', '{"x"}, {}'),
    "reduce_scatter": ('sdy.reduce_scatter [{"y"}, {}]', '{"x", "y"}, {}'),
    "reduce_scatter of two dimensions": (
        'sdy.reduce_scatter [{"y":(1)2}, {"y":(2)2}]',
        '{"x", "y":(1)2}, {"y":(2)2}',
    ),
}


@pytest.mark.parametrize("order", DEVICE_ORDERS.values(), ids=DEVICE_ORDERS)
@pytest.mark.parametrize(("reduction", "after"), REDUCTIONS.values(), ids=REDUCTIONS)
def test_partial_results_are_combined(reduction: str, after: str, order: str):
    text = f"""
      sdy.mesh @mesh = <["x"=2, "y"=4]{order}>
      func.func @main(%arg0: tensor<8x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}},
                      %arg1: tensor<16x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}})
          -> (tensor<8x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{after}]>}}) {{
        %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
          {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}}
          : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %1 = {reduction} %0 out_sharding=<@mesh, [{after}]> : tensor<8x32xf32>
        return %1 : tensor<8x32xf32>
      }}"""
    assert_same_as_whole(parse(text), convert(text), tolerance=1e-6)


SPLIT = Argument((16, 32), (D, M))


def test_what_is_computed_whole_is_told():
    def sums_of_most(x: jax.Array) -> jax.Array:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (31, 1), (1, 1), ((15, 15), (0, 0)))

    module = lower(sums_of_most, SPLIT)
    propagate(module)
    with capture() as warnings:
        partition(module)
    assert [warning.message for warning in warnings] == [
        "'stablehlo.reduce_window' op is replicated along the dimensions in which elements change devices "
        "(each device receives 768 bytes more and makes 768 bytes more)"
    ]
    assert collectives(compile(module).compiled_text()).keys() == {"all-gather"}


def test_manual_computation_runs_as_written():
    mesh = jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)
    add_up = jax.shard_map(
        lambda x: jax.lax.psum(x, D) + jax.lax.axis_index(M),
        mesh=mesh,
        in_specs=PartitionSpec(D, M),
        out_specs=PartitionSpec(None, M),
    )
    module = lower(add_up, SPLIT)
    propagate(module)
    x = np.arange(16 * 32, dtype="float32").reshape(16, 32)
    (result,) = compile(module)(x)
    np.testing.assert_allclose(result, jax.jit(add_up)(x), rtol=1e-6)


def one_op(arguments: str, body: str) -> str:
    return f"""sdy.mesh @mesh = <["x"=2]>
func.func @main({arguments}) {{
  {body}
  return
}}"""


HALF = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
REFUSED = {
    "indivisible": (
        one_op(f"%arg0: tensor<5xf32> {HALF}", ""),
        'dimension 0 of size 5 cannot be split evenly into 2 shards over {"x"}: the value has type tensor<5xf32>',
    ),
    "reshard left": (
        one_op(f"%arg0: tensor<4xf32> {HALF}", "%0 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<4xf32>"),
        "'sdy.reshard' op changes the sharding of a tensor: sdy-reshard-to-collectives must run first",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_converted_is_told(text: str, message: str):
    with pytest.raises(DiagnosticError) as problem:
        convert(text)
    assert problem.value.message == message
    assert problem.value.where is not None
    assert problem.value.where.filename == "test.mlir"


def test_partial_results_that_nothing_combines_are_not_made():
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  %2 = sdy.all_reduce {"x"} %1 out_sharding=<@mesh, []> : tensor<f32>
  RETURN
}"""
    with capture() as warnings:
        whole = convert(text.replace("RETURN", "return %2 : tensor<f32>"))
    assert "nothing combines the partial results" in warnings[0].message
    assert_same_as_whole(parse(text.replace("RETURN", "return %2 : tensor<f32>")), whole, tolerance=1e-6)
    combined = text.replace(
        "RETURN", '%3 = sdy.all_reduce {"y"} %2 out_sharding=<@mesh, []> : tensor<f32>\n return %3 : tensor<f32>'
    )
    assert_same_as_whole(parse(combined), convert(combined), tolerance=1e-6)


def test_elements_are_scattered_by_the_devices_that_have_them():
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %arg1: tensor<8x2xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg2: tensor<8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1],
      index_vector_dim = 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %2 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
    : (tensor<4x6xf32>, tensor<8x2xi32>, tensor<8x1xf32>) -> tensor<4x6xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}"""
    inputs = np.arange(24, dtype="float32").reshape(4, 6)
    indices = np.array([[0, 0], [1, 2], [3, 3], [3, 5], [1, 2], [2, -1], [2, 6], [4, 4]], dtype="int32")
    updates = np.arange(1, 9, dtype="float32").reshape(8, 1)
    module = parse(text, "test.mlir")
    (whole,) = interpret(module, inputs, indices, updates)
    with capture() as warnings:
        ConvertGlobalToLocalPass().apply(context(), module)
    assert not warnings
    np.testing.assert_array_equal(interpret(module, inputs, indices, updates)[0], whole)


def test_missing_reshard_between_caller_and_callee_is_told():
    text = f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {HALF}) {{
  call @f(%arg0) : (tensor<4xf32>) -> ()
  return
}}
func.func private @f(%arg0: tensor<4xf32>) {{
  return
}}"""
    with pytest.raises(DiagnosticError, match="a local shard of type tensor<2xf32> is used where tensor<4xf32>"):
        convert(text)


def test_module_is_converted_only_once():
    module = convert(one_op(f"%arg0: tensor<4xf32> {HALF}", ""))
    with pytest.raises(DiagnosticError, match="partitioned already"):
        ConvertGlobalToLocalPass(compute_whole=True).apply(context(), module)
