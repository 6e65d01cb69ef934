"""The reference interpreter: results on one device and on a mesh, and errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.export import is_symbolic_dim

import sdy
from jax_programs import PROGRAMS
from partitioned_programs import partitioned
from samples import sample
from sdy.diagnostics import DiagnosticError
from sdy.interpreter.check_dialect import CHECK, INTERPRETER
from sdy.text import context
from sdy.tools.sdy_interpret import main
from sdy_collectives import COLLECTIVES, DEVICE_ORDERS, convert

NOT_INTERPRETED = {
    "callback": "xla_ffi_python_cpu_callback",
    "top k": "ApproxTopK",
}
"""Programs with an operation that cannot be interpreted, and the error."""

ON_SEVERAL_DEVICES = ("all gather", "all to all", "axis index", "permute", "pmax", "psum", "reduce scatter")
NOT_RUN_BY_JAX: dict[str, Callable[[Any], Any]] = {
    "broadcast from one device": lambda x: np.tile(x[2:4], (4, 1)),
    "send and receive": lambda x: np.pad(x[:2], ((2, 4), (0, 0))),
}
"""Programs for other platforms, and their results on four devices with two rows each."""
NOT_COMPARED = {"asynchronous gather", "linear algebra on a TPU", "tokens", "uniform"}
ORDER_LEFT_OPEN = {"reduction with a body"}
"""Programs whose result depends on the order of a reduction, which StableHLO leaves open."""

STATIC = [
    name
    for name, program in PROGRAMS.items()
    if not any(is_symbolic_dim(size) for argument in program.arguments for size in argument.shape)
    and name not in {*NOT_INTERPRETED, *ON_SEVERAL_DEVICES, *NOT_RUN_BY_JAX, *NOT_COMPARED, *ORDER_LEFT_OPEN}
]


def some_array(shape: jax.ShapeDtypeStruct, random: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype = np.dtype(shape.dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape.shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(1, 8, shape.shape).astype(dtype)
    real = random.uniform(0.1, 0.9, shape.shape)
    return (real + 1j * random.uniform(0.1, 0.9, shape.shape) if dtype.kind == "c" else real).astype(dtype)


def assert_close(result: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    wanted = np.asarray(wanted)
    assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, wanted)
    else:
        wide = np.complex128 if result.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(result.astype(wide), wanted.astype(wide), tolerance, tolerance)


def module_of(name: str) -> Any:
    program = PROGRAMS[name]
    traced = jax.jit(program.function, keep_unused=True).trace(*program.arguments)
    lowered = traced.lower(lowering_platforms=(program.platform,))
    return sdy.parse(str(lowered.compiler_ir("stablehlo")))


@pytest.mark.parametrize("name", sample(STATIC, one_in=4))
def test_program_computes_what_jax_does(name: str):
    random = np.random.default_rng(0)
    arguments = [some_array(shape, random) for shape in PROGRAMS[name].arguments]
    results = sdy.interpret(module_of(name), *arguments)
    wanted = jax.tree.leaves(jax.jit(PROGRAMS[name].function)(*arguments))
    for result, value in zip(results, wanted, strict=True):
        assert_close(result, value)


@pytest.mark.parametrize("name", NOT_INTERPRETED)
def test_errors_name_operations_that_cannot_be_interpreted(name: str):
    random = np.random.default_rng(0)
    arguments = [some_array(shape, random) for shape in PROGRAMS[name].arguments]
    with pytest.raises(DiagnosticError, match=NOT_INTERPRETED[name]):
        sdy.interpret(module_of(name), *arguments)


@pytest.mark.parametrize("name", ON_SEVERAL_DEVICES)
def test_program_of_each_device_computes_what_jax_does(name: str):
    program = PROGRAMS[name]
    random = np.random.default_rng(0)
    arguments = [some_array(shape, random) for shape in program.arguments]
    (result,) = sdy.interpret(partitioned(module_of(name)), *arguments)
    assert_close(result, jax.jit(program.function)(*arguments))


@pytest.mark.parametrize("name", NOT_RUN_BY_JAX)
def test_program_for_other_devices_is_run(name: str):
    module = module_of(name)
    (shape,) = PROGRAMS[name].arguments
    array = some_array(shape, np.random.default_rng(0))
    for program in (module, partitioned(module)):
        np.testing.assert_array_equal(sdy.interpret(program, array)[0], NOT_RUN_BY_JAX[name](array))


def test_a_collective_that_is_started_and_waited_for_is_run():
    """JAX before 0.11.2 lowers to these operations, later versions to custom calls that only XLA implements."""
    module = sdy.parse("""
      sdy.mesh @mesh = <["x"=4]>
      func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
        %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
            manual_axes={"x"} (%shard: tensor<2x4xf32>) {
          %future = "stablehlo.async_start"(%shard) ({
          ^bb0(%given: tensor<2x4xf32>):
            %all = "stablehlo.all_gather"(%given) <{
              all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
              channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids
            }> : (tensor<2x4xf32>) -> tensor<8x4xf32>
            stablehlo.return %all : tensor<8x4xf32>
          }) : (tensor<2x4xf32>) -> !stablehlo.future<tensor<8x4xf32>>
          %gathered = "stablehlo.async_done"(%future) : (!stablehlo.future<tensor<8x4xf32>>) -> tensor<8x4xf32>
          %first = stablehlo.slice %gathered [0:2, 0:4] : (tensor<8x4xf32>) -> tensor<2x4xf32>
          sdy.return %first : tensor<2x4xf32>
        } : (tensor<8x4xf32>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>
      }""")
    array = np.arange(32, dtype=np.float32).reshape(8, 4)
    for program in (module, partitioned(module)):
        np.testing.assert_array_equal(sdy.interpret(program, array)[0], np.tile(array[:2], (4, 1)))


@pytest.mark.parametrize("element", ["f32", "bf16", "i32"])
def test_random_numbers_are_alike_on_one_device_and_on_many(element: str):
    module = sdy.parse(f"""
      sdy.mesh @mesh = <["x"=4], device_ids=[2, 0, 3, 1]>
      func.func @main(%a: tensor<{element}>, %b: tensor<{element}>)
          -> (tensor<64x8x{element}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}, tensor<9x{element}>) {{
        %shape = stablehlo.constant dense<[64, 8]> : tensor<2xi64>
        %nine = stablehlo.constant dense<9> : tensor<1xi64>
        %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM
          : (tensor<{element}>, tensor<{element}>, tensor<2xi64>) -> tensor<64x8x{element}>
        %1 = stablehlo.rng %a, %b, %nine, distribution = UNIFORM
          : (tensor<{element}>, tensor<{element}>, tensor<1xi64>) -> tensor<9x{element}>
        return %0, %1 : tensor<64x8x{element}>, tensor<9x{element}>
      }}""")
    dtype = {"f32": np.float32, "bf16": jnp.bfloat16, "i32": np.int32}[element]
    bounds = [np.array(bound, dtype) for bound in (2, 9)]
    whole = sdy.interpret(module, *bounds)
    numbers = whole[0].astype(np.float64)
    assert ((numbers >= 2) & (numbers < 9)).all()
    assert abs(numbers.mean() - (5 if element == "i32" else 5.5)) < 0.5
    for result, wanted in zip(sdy.interpret(partitioned(module), *bounds), whole, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_random_numbers_are_normally_distributed():
    module = sdy.parse("""
      func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<1000xf32> {
        %shape = stablehlo.constant dense<1000> : tensor<1xi64>
        %0 = stablehlo.rng %a, %b, %shape, distribution = NORMAL
          : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1000xf32>
        return %0 : tensor<1000xf32>
      }""")
    (numbers,) = sdy.interpret(module, np.float32(3), np.float32(2))
    assert abs(numbers.mean() - 3) < 0.2
    assert abs(numbers.std() - 2) < 0.2


@pytest.mark.parametrize("order", DEVICE_ORDERS.values(), ids=DEVICE_ORDERS)
@pytest.mark.parametrize(("before", "collective", "after"), COLLECTIVES.values(), ids=COLLECTIVES)
def test_collective_changes_nothing_but_the_layout(before: str, collective: str, after: str, order: str):
    module = convert(f"""
      sdy.mesh @mesh = <["x"=2, "y"=4]{order}>
      func.func @main(%arg0: tensor<8x16x4x8xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{before}]>}})
          -> (tensor<8x16x4x8xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{after}]>}}) {{
        %0 = {collective} %arg0 out_sharding=<@mesh, [{after}]> : tensor<8x16x4x8xi32>
        return %0 : tensor<8x16x4x8xi32>
      }}""")
    array = np.arange(8 * 16 * 4 * 8, dtype=np.int32).reshape(8, 16, 4, 8)
    np.testing.assert_array_equal(sdy.interpret(module, array)[0], array)


@pytest.mark.parametrize("shape", [(), (5, 6)], ids=str)
@pytest.mark.parametrize("algorithm", ["DEFAULT", "PHILOX", "THREE_FRY"])
def test_random_bits_are_those_of_xla(algorithm: str, shape: tuple[int, ...]):
    kind = getattr(lax.RandomAlgorithm, f"RNG_{algorithm}")
    # The counter, the second half of the key, is about to overflow.
    key = np.array([5, 7, 2**32 - 2, 2**32 - 1], np.uint32)
    for dtype in (jnp.uint8, jnp.uint32):
        draw = jax.jit(lambda key, dtype=dtype: lax.rng_bit_generator(key, shape, dtype, kind))
        results = sdy.interpret(sdy.parse(draw.lower(key).as_text()), key)
        for result, wanted in zip(results, draw(key), strict=True):
            assert_close(result, wanted)


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("f64", np.float64),
        ("f32", np.float32),
        ("bf16", ml_dtypes.bfloat16),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f4E2M1FN", ml_dtypes.float4_e2m1fn),
    ],
)
def test_total_order_has_a_place_for_each_number(element: str, dtype: type[np.generic]):
    type_ = f"tensor<6x{element}>"
    module = sdy.parse(
        f"""func.func @main(%x: {type_}, %y: {type_}) -> tensor<6xi1> {{
          %0 = stablehlo.compare LT, %x, %y, TOTALORDER : ({type_}, {type_}) -> tensor<6xi1>
          return %0 : tensor<6xi1>
        }}"""
    )
    numbers = np.array([-3.0, -1.0, -0.0, 0.0, 0.5, 1.0, 4.0]).astype(dtype)
    assert sdy.interpret(module, numbers[:-1], numbers[1:])[0].all()
    assert not sdy.interpret(module, numbers[1:], numbers[:-1])[0].any()


def test_updates_that_are_partly_outside_go_nowhere_as_in_jax():
    def scatter(x: jax.Array, start: jax.Array, updates: jax.Array) -> jax.Array:
        numbers = lax.ScatterDimensionNumbers((0,), (), (0,))
        return lax.scatter_add(x, start, updates, numbers, mode="promise_in_bounds")

    x, updates = np.zeros(4, np.int32), np.arange(1, 4, dtype=np.int32)
    for start in range(-4, 6):
        arguments = (x, np.array([start], np.int32), updates)
        module = sdy.from_jax(jax.jit(scatter), *arguments)
        assert np.array_equal(sdy.interpret(module, *arguments)[0], jax.jit(scatter)(*arguments)), start


def test_einsum():
    module = sdy.parse("""
      func.func @main(%arg0: tensor<3x2x4xf32>, %arg1: tensor<3x4x5xf32>) -> (tensor<5x3x2xf32>, tensor<2xf32>) {
        %0 = stablehlo.einsum %arg0, %arg1, config = "bij,bjk->kbi"
          : (tensor<3x2x4xf32>, tensor<3x4x5xf32>) -> tensor<5x3x2xf32>
        %1 = stablehlo.unary_einsum %arg0, config = "bij->i" : (tensor<3x2x4xf32>) -> tensor<2xf32>
        return %0, %1 : tensor<5x3x2xf32>, tensor<2xf32>
      }""")
    random = np.random.default_rng(0)
    lhs, rhs = (random.normal(size=shape).astype(np.float32) for shape in ((3, 2, 4), (3, 4, 5)))
    product, sums = sdy.interpret(module, lhs, rhs)
    assert_close(product, np.transpose(lhs @ rhs, (2, 0, 1)))
    assert_close(sums, lhs.sum((0, 2)))


def test_quantized_tensors_stand_for_numbers():
    module = sdy.parse("""
      func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xi8>) -> (tensor<2xf32>, tensor<2xi8>) {
        %0 = stablehlo.uniform_quantize %arg0 : (tensor<2xf32>) -> tensor<2x!quant.uniform<u8:f32, 0.5:128>>
        %1 = stablehlo.bitcast_convert %arg1 : (tensor<2xi8>) -> tensor<2x!quant.uniform<u8:f32, 0.5:128>>
        %2 = stablehlo.add %0, %1 : tensor<2x!quant.uniform<u8:f32, 0.5:128>>
        %3 = stablehlo.uniform_dequantize %2 : (tensor<2x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<2xf32>
        %4 = stablehlo.bitcast_convert %2 : (tensor<2x!quant.uniform<u8:f32, 0.5:128>>) -> tensor<2xi8>
        return %3, %4 : tensor<2xf32>, tensor<2xi8>
      }""")
    numbers, stored = sdy.interpret(module, np.array([1.2, 60], np.float32), np.array([-128 + 6, -1], np.int8))
    assert numbers.tolist() == [4.0, 63.5]
    assert stored.tolist() == [136 - 256, -1]


def test_products_and_sums_of_quantized_tensors_are_those_of_numbers():
    module = sdy.parse("""
      !eighths = !quant.uniform<i8:f32, 0.125:3>
      !columns = !quant.uniform<i8:f32:1, {0.5, 0.25}>
      func.func @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x2xf32>)
          -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2x2xf32>, tensor<f32>) {
        %lhs = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!eighths>
        %rhs = stablehlo.uniform_quantize %arg1 : (tensor<3x2xf32>) -> tensor<3x2x!columns>
        %0 = stablehlo.dot_general %lhs, %rhs, contracting_dims = [1] x [0]
          : (tensor<2x3x!eighths>, tensor<3x2x!columns>) -> tensor<2x2x!eighths>
        %1 = stablehlo.uniform_dequantize %0 : (tensor<2x2x!eighths>) -> tensor<2x2xf32>
        %2 = stablehlo.dot_general %arg0, %rhs, contracting_dims = [1] x [0]
          : (tensor<2x3xf32>, tensor<3x2x!columns>) -> tensor<2x2xf32>
        %image = stablehlo.reshape %lhs : (tensor<2x3x!eighths>) -> tensor<1x2x3x!eighths>
        %kernel = stablehlo.reshape %lhs : (tensor<2x3x!eighths>) -> tensor<1x3x2x!eighths>
        %3 = stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x2x3x!eighths>, tensor<1x3x2x!eighths>) -> tensor<1x2x2x!eighths>
        %4 = stablehlo.uniform_dequantize %3 : (tensor<1x2x2x!eighths>) -> tensor<1x2x2xf32>
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %5 = stablehlo.uniform_quantize %zero : (tensor<f32>) -> tensor<!eighths>
        %6 = stablehlo.reduce(%lhs init: %5) applies stablehlo.add across dimensions = [0, 1]
          : (tensor<2x3x!eighths>, tensor<!eighths>) -> tensor<!eighths>
        %7 = stablehlo.uniform_dequantize %6 : (tensor<!eighths>) -> tensor<f32>
        return %1, %2, %4, %7 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2x2xf32>, tensor<f32>
      }""")
    lhs = np.array([[1, 2, 3], [-1, 0, 1]], np.float32) / 4
    rhs = np.array([[1, 2], [0, 4], [8, 1]], np.float32) / 2
    kernel = lhs.reshape(3, 2)
    expected = [np.rint(8 * (lhs @ rhs) + 3) / 8 - 3 / 8, lhs @ np.stack([np.rint(2 * rhs[:, 0]) / 2, rhs[:, 1]], 1)]
    expected += [np.rint(8 * (lhs @ kernel) + 3)[None] / 8 - 3 / 8, lhs.sum()]
    for result, wanted in zip(sdy.interpret(module, lhs, rhs), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_partial_sums_of_a_manual_computation_are_refused():
    module = sdy.parse("""
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%arg0: tensor<4xf32>) -> tensor<2xf32> {
        %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>]
            out_shardings=[<@mesh, [{}], unreduced={"x"}>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
          sdy.return %arg1 : tensor<2xf32>
        } : (tensor<4xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }""")
    with pytest.raises(DiagnosticError, match="with unreduced axes cannot be interpreted"):
        sdy.interpret(module, np.zeros(4, np.float32))


def test_expectations_are_printed_as_they_are_read():
    text = """module {
  func.func @main(%arg0: tensor<2xf32>) {
    check.expect_eq %arg0, %arg0 : tensor<2xf32>
    check.expect_eq_const %arg0, dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
    check.expect_almost_eq %arg0, %arg0, tolerance = 1.000000e-01 : tensor<2xf32>
    check.expect_almost_eq_const %arg0, dense<1.000000e+00> : tensor<2xf32>
    check.expect_close %arg0, %arg0, max_ulp_difference = 3, min_ulp_difference = 1 : tensor<2xf32>, tensor<2xf32>
    %0 = interpreter.probe %arg0, probe_id = "probe" : tensor<2xf32>
    check.expect_serialized_eq %0, probe_id = "probe", iter = 1 : tensor<2xf32>
    interpreter.print %0 : tensor<2xf32>
    return
  }
}
"""
    ctx = context()
    for dialect in (CHECK, INTERPRETER):
        ctx.load_dialect(dialect)
    assert sdy.format(sdy.parse(text, ctx=ctx)) == text


def test_any_comparator_and_body_is_run():
    """A body with a loop is not vectorized."""
    module = sdy.parse("""
      func.func @main(%arg0: tensor<7xi32>) -> (tensor<7xi32>, tensor<i32>) {
        %0 = stablehlo.constant dense<0> : tensor<i32>
        %1 = "stablehlo.sort"(%arg0) ({
        ^bb0(%a: tensor<i32>, %b: tensor<i32>):
          %3 = stablehlo.slice %arg0 [0:1] : (tensor<7xi32>) -> tensor<1xi32>
          %4 = stablehlo.reshape %3 : (tensor<1xi32>) -> tensor<i32>
          %5 = stablehlo.remainder %a, %4 : tensor<i32>
          %6 = stablehlo.remainder %b, %4 : tensor<i32>
          %7 = stablehlo.compare LT, %5, %6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %7 : tensor<i1>
        }) : (tensor<7xi32>) -> tensor<7xi32>
        %2 = stablehlo.reduce(%arg0 init: %0) across dimensions = [0] : (tensor<7xi32>, tensor<i32>) -> tensor<i32>
         reducer(%a: tensor<i32>, %b: tensor<i32>) {
          %3 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
          %4 = "stablehlo.if"(%3) ({ stablehlo.return %b : tensor<i32> }, { stablehlo.return %a : tensor<i32> })
            : (tensor<i1>) -> tensor<i32>
          stablehlo.return %4 : tensor<i32>
        }
        return %1, %2 : tensor<7xi32>, tensor<i32>
      }""")
    ordered, largest = sdy.interpret(module, np.array([3, 5, 1, 9, 4, 2, 6], np.int32))
    assert ordered.tolist() == [3, 9, 6, 1, 4, 5, 2]
    assert largest == 9


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ([], TypeError, "the program takes 1 arguments, not 0"),
        ([np.zeros(4, np.int32)], TypeError, "argument 0 must have elements of type float32, not int32"),
        ([np.zeros(3, np.float32)], ValueError, "argument 0 must have shape \\(4,\\), not \\(3,\\)"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[Any], kind: type[Exception], message: str):
    module = sdy.parse("func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> { return %arg0 : tensor<4xf32> }")
    with pytest.raises(kind, match=message):
        sdy.interpret(module, *arguments)


PROGRAM = """
func.func @sum_on_first(%arg0: tensor<2xi32>) -> tensor<2xi32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.constant dense<FIRST> : tensor<ui32>
  %2 = stablehlo.compare LE, %0, %1 : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %3 = "stablehlo.if"(%2) ({
    %4 = "stablehlo.all_reduce"(%arg0) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %5 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %5 : tensor<i32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
      : (tensor<2xi32>) -> tensor<2xi32>
    stablehlo.return %4 : tensor<2xi32>
  }, {
    stablehlo.return %arg0 : tensor<2xi32>
  }) : (tensor<i1>) -> tensor<2xi32>
  return %3 : tensor<2xi32>
}
func.func @main() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1:2 = "interpreter.run_parallel"(%0, %0) {programs = [[@sum_on_first, @sum_on_first]]}
    : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  check.expect_eq_const %1#1, dense<[2, WANTED]> : tensor<2xi32>
  return
}
"""


@pytest.mark.parametrize(
    ("first", "wanted", "message"),
    [
        (1, 4, ""),
        (1, 5, "24:3: error: 'check.expect_eq_const' op expected 5 at [1], found 4 (1 of 2 elements differ)"),
        (0, 4, "7:10: error: 'stablehlo.all_reduce' op deadlock: device (0, 0) waits for devices that have ended"),
    ],
    ids=["holds", "does not hold", "never ends"],
)
def test_command_reports_failed_expectations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int, wanted: int, message: str
):
    file = tmp_path / "program.mlir"
    file.write_text(PROGRAM.replace("FIRST", str(first)).replace("WANTED", str(wanted)))
    assert main([str(file)]) == (1 if message else 0)
    told = capsys.readouterr().err
    assert message in told
    assert bool(told) == bool(message)


WITH_ARGUMENTS = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg1: tensor<bf16>)
    -> (tensor<f32>, tensor<bf16>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %1, %arg1 : tensor<f32>, tensor<bf16>
}
"""


def test_command_takes_arguments_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A partitioned program takes global arrays too, and runs on all devices of its mesh."""
    partitioned_program = sdy.parse(WITH_ARGUMENTS)
    sdy.propagate(partitioned_program)
    sdy.partition(partitioned_program)
    assert "all_reduce" in sdy.format(partitioned_program)
    np.savez(tmp_path / "in.npz", arg0=np.arange(1, 5, dtype=np.float32), arg1=ml_dtypes.bfloat16(1.5))
    for text in (WITH_ARGUMENTS, sdy.format(partitioned_program)):
        (tmp_path / "in.mlir").write_text(text)
        assert main([str(tmp_path / "in.mlir"), "--inputs", str(tmp_path / "in.npz")]) == 0
        assert capsys.readouterr().out.split() == ["10.0", "1.5"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "in.npz:1:1: error: missing array 'arg0' for argument 0"),
        ({"arg0": np.zeros(3, np.float32)}, "in.npz:1:1: error: argument 0 must have shape (4,), not (3,)"),
        ({"arg0": np.zeros(4, np.int32)}, "in.npz:1:1: error: argument 0 must have elements of type float32"),
        (None, "in.mlir:3:1: error: @main takes arguments: pass them with --inputs FILE.npz"),
    ],
    ids=["none", "another shape", "another type", "no file"],
)
def test_command_refuses_arguments_that_do_not_fit(
    arrays: dict[str, Any] | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "in.mlir").write_text(WITH_ARGUMENTS)
    np.savez(tmp_path / "in.npz", **(arrays or {}))
    flags = [] if arrays is None else ["--inputs", str(tmp_path / "in.npz")]
    assert main([str(tmp_path / "in.mlir"), *flags]) == 2
    assert message in capsys.readouterr().err
