"""Predicted costs of a partitioned program: bytes received, and peak memory."""

from dataclasses import replace

import pytest

import sdy
from sdy.diagnostics import capture
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.hardware import hardware_of
from sdy.passes.spmd.costs.step_time import compute_seconds

FUNCTION = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
                %b: tensor<64x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x16xf32> {{
  {body}
}}
"""
DOT = "stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>"
LOOP = """
  %begin = stablehlo.constant dense<2> : tensor<i32>
  %end = stablehlo.constant dense<9> : tensor<i32>
  %step = stablehlo.constant dense<3> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<8x16xf32>
  %r:3 = stablehlo.while(%i = %begin, %x = %a, %sum = %zero) : tensor<i32>, tensor<8x64xf32>, tensor<8x16xf32>
  cond {
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %0 = DOT
    %1 = stablehlo.maximum %sum, %0 : tensor<8x16xf32>
    %2 = stablehlo.negate %x : tensor<8x64xf32>
    %next = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %next, %2, %1 : tensor<i32>, tensor<8x64xf32>, tensor<8x16xf32>
  }
  return %r#2 : tensor<8x16xf32>"""
IN_EACH_TURN = LOOP.replace("DOT", DOT.replace("%a", "%x"))
BEFORE_THE_LOOP = LOOP.replace("DOT", DOT)


def partitioned(body: str):
    module = sdy.parse(FUNCTION.format(body=body))
    with capture():
        sdy.propagate(module)
        sdy.partition(module)
    return module


ALL_REDUCE = 2 * 8 * 16 * 4 * 3 / 4
"""Groups of 4, of the 8 x 16 result: three quarters of it, twice."""


@pytest.mark.parametrize(
    ("body", "received"),
    [
        (f"%0 = {DOT}\n return %0 : tensor<8x16xf32>", ALL_REDUCE),
        (IN_EACH_TURN, 3 * ALL_REDUCE),
        (BEFORE_THE_LOOP, ALL_REDUCE),
    ],
)
def test_bytes_received(body: str, received: float):
    """A loop from 2 to 9 by 3 has three iterations; a loop-invariant sum is all-reduced once."""
    assert bytes_received(partitioned(body)) == pytest.approx(received)


def test_memory():
    """Peak memory is arguments, result, and the partial product, which dies after the all-reduce."""
    arguments, result = (8 * 16 + 16 * 16) * 4, 8 * 16 * 4
    assert peak_bytes(partitioned(f"%0 = {DOT}\n return %0 : tensor<8x16xf32>")) == arguments + 2 * result


def test_update_does_not_copy_its_operand():
    """Writing a row into a cache sharded by rows takes the cache, twice, and a few rows."""
    module = sdy.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%cache: tensor<256x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %row: tensor<1x16xf32>, %place: tensor<i32>) -> tensor<256x16xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %cache, %row, %place, %zero
    : (tensor<256x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<256x16xf32>
  return %0 : tensor<256x16xf32>
}
""")
    sdy.propagate(module)
    sdy.partition(module)
    part, row = 64 * 16 * 4, 16 * 4
    assert peak_bytes(module) < 2 * part + 10 * row


def test_loop_carried_values_take_no_time():
    loop = """
  %begin = stablehlo.constant dense<0> : tensor<i32>
  %negated = stablehlo.negate %a : tensor<8x64xf32>
  %r:3 = stablehlo.while(%i = %begin, %x = %a, %y = %negated) : tensor<i32>, tensor<8x64xf32>, tensor<8x64xf32>
  cond {
    %end = stablehlo.constant dense<1000> : tensor<i32>
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %y, %x : tensor<i32>, tensor<8x64xf32>, tensor<8x64xf32>
  }
  """
    dot = f"%d = {DOT.replace('%a', '%r#1')}\n return %d : tensor<8x16xf32>"
    hardware = hardware_of("tpu-v5p")
    of_one_value = 1000 * 8 * 16 * 4 / hardware.memory_bandwidth
    assert compute_seconds(partitioned(loop + dot), replace(hardware, overhead=0.0)) < of_one_value


TABLE, ROWS = 2**16 * 64 * 4, 8 * 64 * 4
LOOKUP = """
func.func @main(%table: tensor<65536x64xf32>, %numbers: tensor<8x1xi32>) -> tensor<8x64xf32> {
  %0 = "stablehlo.gather"(%table, %numbers) <{
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
                                          index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 64>}> : (tensor<65536x64xf32>, tensor<8x1xi32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}
"""
UPDATE = """
func.func @main(%table: tensor<65536x64xf32> {donated}, %rows: tensor<8x64xf32>, %place: tensor<i32>)
    -> tensor<65536x64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %table, %rows, %place, %zero
    : (tensor<65536x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<65536x64xf32>
  return %0 : tensor<65536x64xf32>
}}
"""
SCATTER = """
func.func @main(%table: tensor<65536x64xf32> {tf.aliasing_output = 0 : i32}, %numbers: tensor<8x1xi32>,
                %rows: tensor<8x64xf32>) -> tensor<65536x64xf32> {
  %0 = "stablehlo.scatter"(%table, %numbers, %rows) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
                                                   scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<65536x64xf32>, tensor<8x1xi32>, tensor<8x64xf32>) -> tensor<65536x64xf32>
  return %0 : tensor<65536x64xf32>
}
"""
PADDED_PART = """
func.func @main(%table: tensor<65536x64xf32>, %place: tensor<i32>) -> tensor<8x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.pad %table, %zero, low = [0, 0], high = [7, 0], interior = [0, 0]
    : (tensor<65536x64xf32>, tensor<f32>) -> tensor<65543x64xf32>
  %1 = stablehlo.dynamic_slice %0, %place, %none, sizes = [8, 64]
    : (tensor<65543x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "traffic"),
    [
        pytest.param(LOOKUP, 2 * ROWS, id="rows are looked up"),
        pytest.param(UPDATE.format(donated="{jax.buffer_donor = true}"), 2 * ROWS, id="a donated table is updated"),
        pytest.param(UPDATE.format(donated=""), 2 * TABLE, id="a table that its caller keeps is copied"),
        pytest.param(SCATTER, 3 * ROWS, id="updates are added to rows"),
        pytest.param(PADDED_PART, 2 * ROWS, id="of what is padded a part is taken"),
    ],
)
def test_of_a_table_only_what_is_touched_takes_time(text: str, traffic: int):
    hardware = hardware_of("tpu-v5p")
    seconds = traffic / hardware.memory_bandwidth / hardware.memory_fraction
    assert compute_seconds(sdy.parse(text), hardware) == pytest.approx(seconds, rel=0.05)


def test_a_reshape_that_adds_a_dimension_of_size_1_takes_no_time() -> None:
    search = "%values, %places = chlo.top_k(%v, k = 1) : tensor<SHAPE> -> (tensor<RESULTxf32>, tensor<RESULTxi32>)"

    def program(reshape: str, shape: str, result: str) -> str:
        body = search.replace("SHAPE", shape).replace("RESULT", result)
        return f"""
        func.func @main(%x: tensor<8x65536xf32>) -> tensor<{result}xf32> {{
          {reshape}
          {body if reshape else body.replace("%v,", "%x,")}
          return %values : tensor<{result}xf32>
        }}"""

    def seconds(text: str) -> float:
        return compute_seconds(sdy.parse(text), hardware_of("tpu-v5p"))

    to = "%v = stablehlo.reshape %x : (tensor<8x65536xf32>) -> tensor"
    alone = seconds(program("", "8x65536xf32", "8x1"))
    assert seconds(program(f"{to}<8x1x65536xf32>", "8x1x65536xf32", "8x1x1")) == pytest.approx(alone)
    assert seconds(program(f"{to}<65536x8xf32>", "65536x8xf32", "65536x1")) > 2 * alone
