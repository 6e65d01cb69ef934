"""Operations on sharded tensors, interpreted on all devices and compared with the unpartitioned operation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from partitioned_programs import assert_same
from samples import covering
from sdy.array_types import array_type
from sdy.diagnostics import capture
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import run_passes
from sdy.passes.pipelines import PropagationPipeline
from split_programs import IN_PARTS, SUM, WHOLE, module


def random_arrays(module: ModuleOp) -> list[Any]:
    """Draw arguments for the module; integers are from -3 to 9, so that some indices are out of bounds."""
    random = np.random.default_rng(0)
    main = main_function(module)
    arrays: list[Any] = []
    for shape, dtype in (array_type(type_, main) for type_ in main.function_type.inputs):
        match dtype.kind:
            case "c":
                array = random.standard_normal(shape) + 1j * random.standard_normal(shape)
            case "f":
                array = random.standard_normal(shape)
            case kind:
                array = random.integers(0 if kind == "u" else -3, 10, shape)
        arrays.append(array.astype(dtype) if shape else dtype.type(array))
    return arrays


def warnings_of(text: str, propagate: Callable[[ModuleOp], None] = sdy.propagate) -> list[str]:
    """Check that the partitioned program computes the same, and return the partitioner's warnings."""
    program = module(text)
    arrays = random_arrays(program)
    whole = sdy.interpret(program, *arrays)
    with capture() as diagnostics:
        propagate(program)
        sdy.partition(program)
    assert_same(sdy.interpret(program, *arrays), whole, tolerance=1e-5)
    return [diagnostic.message for diagnostic in diagnostics if "registry" not in diagnostic.message]


def test_a_constant_without_elements_has_no_parts():
    assert not warnings_of("""
        func.func @main(%arg0: tensor<4x0xf32>[x, ]) -> (tensor<4x0xf32>[x, ]) {
          %0 = stablehlo.constant dense<> : tensor<4x0xf32>
          %1 = stablehlo.add %arg0, %0 : tensor<4x0xf32>
          return %1 : tensor<4x0xf32>
        }""")


@pytest.mark.parametrize("text", IN_PARTS.values(), ids=IN_PARTS)
def test_devices_compute_their_parts(text: str):
    assert not warnings_of(text)


@pytest.mark.parametrize(
    "name", ["composites in a composite", "gradient of a normalisation", "normalisation of batches"]
)
def test_shardings_propagate_through_the_decomposition_of_an_operation(name: str):
    """After Shardy's passes alone, shardings stop at the operation."""
    assert not warnings_of(IN_PARTS[name], lambda program: run_passes(program, [PropagationPipeline()]))


@pytest.mark.parametrize("name", WHOLE)
def test_replicated_operations_are_named_in_warnings(name: str):
    assert any(message.startswith(f"'{name}' op is replicated") for message in warnings_of(WHOLE[name]))


# Each: the axes that shard a tensor<8x4x6xf32> whose first two dimensions are indexed.
INDEXED = ["x,,", ",x,", ",,x", "x, y,", ",y, x", "x y,,"]


@covering
@pytest.mark.parametrize("axes", INDEXED)
@pytest.mark.parametrize("indexed", ["0, 1", "1, 0", "0", "1"])
def test_gather_reads_where_the_indices_say(axes: str, indexed: str):
    width = len(indexed.split(","))
    assert not warnings_of(f"""
      func.func @main(%arg0: tensor<8x4x6xf32>[{axes}], %arg1: tensor<5x{width}xi32>) -> tensor<5x6xf32> {{
        %0 = "stablehlo.gather"(%arg0, %arg1) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0, 1], start_index_map = [{indexed}], index_vector_dim = 1>,
            slice_sizes = array<i64: 1, 1, 6>}}> : (tensor<8x4x6xf32>, tensor<5x{width}xi32>) -> tensor<5x6xf32>
        return %0 : tensor<5x6xf32>
      }}""")


@covering
@pytest.mark.parametrize("axes", INDEXED)
@pytest.mark.parametrize("indexed", ["0, 1", "1, 0", "0", "1"])
@pytest.mark.parametrize("update", ["add", "subtract"])
def test_scatter_writes_where_the_indices_say(axes: str, indexed: str, update: str):
    width = len(indexed.split(","))
    assert not warnings_of(f"""
      func.func @main(%arg0: tensor<8x4x6xf32>[{axes}], %arg1: tensor<5x{width}xi32>, %arg2: tensor<5x6xf32>)
          -> tensor<8x4x6xf32>[{axes}] {{
        %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{{scatter_dimension_numbers = #stablehlo.scatter<
            update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [{indexed}],
            index_vector_dim = 1>}}> {SUM.replace("add", update)}
          : (tensor<8x4x6xf32>, tensor<5x{width}xi32>, tensor<5x6xf32>) -> tensor<8x4x6xf32>
        return %0 : tensor<8x4x6xf32>
      }}""")


@pytest.mark.parametrize("split", ['[{"x"}, {}]', '[{"x", "y"}, {}]', '[{"y"}, {"x"}]'])
@pytest.mark.parametrize("rows", [8, 7, 3])
def test_scatter_of_windows_of_one_row(split: str, rows: int):
    """Some rows are out of bounds, and shards may be uneven."""
    assert not warnings_of(f"""
      func.func @main(%arg0: tensor<{rows}x4xf32>, %arg1: tensor<6x1xi32>[x,], %arg2: tensor<6x1x4xf32>)
          -> tensor<{rows}x4xf32> {{
        %0 = sdy.sharding_constraint %arg0 <@mesh, {split}> : tensor<{rows}x4xf32>
        %1 = "stablehlo.scatter"(%0, %arg1, %arg2) <{{scatter_dimension_numbers = #stablehlo.scatter<
            update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {SUM}
          : (tensor<{rows}x4xf32>, tensor<6x1xi32>, tensor<6x1x4xf32>) -> tensor<{rows}x4xf32>
        %2 = sdy.sharding_constraint %1 <@mesh, {split}> : tensor<{rows}x4xf32>
        return %2 : tensor<{rows}x4xf32>
      }}""")


@pytest.mark.parametrize("element", ["i32", "i64", "ui8"])
@pytest.mark.parametrize("update", ["add", "multiply", "maximum"])
def test_scatter_of_updates_that_are_split(element: str, update: str):
    assert not warnings_of(f"""
      func.func @main(%arg0: tensor<8x4xf32>[y,], %arg1: tensor<6x1x{element}>[x,], %arg2: tensor<6x4xf32>[x,])
          -> tensor<8x4xf32>[y,] {{
        %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{{scatter_dimension_numbers = #stablehlo.scatter<
            update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
            index_vector_dim = 1>}}> {SUM.replace("add", update)}
          : (tensor<8x4xf32>, tensor<6x1x{element}>, tensor<6x4xf32>) -> tensor<8x4xf32>
        return %0 : tensor<8x4xf32>
      }}""")


@pytest.mark.parametrize(
    ("low", "high", "interior"), [(1, 2, 0), (1, 1, 1), (-1, 0, 0), (0, -2, 0), (2, 3, 2), (-2, 1, 0)]
)
def test_pad_of_an_uneven_dimension(low: int, high: int, interior: int):
    size = 6 * (interior + 1) + 1 + low + high
    warnings_of(f"""
      func.func @main(%arg0: tensor<7x4xf32>, %arg1: tensor<f32>) -> tensor<{size}x4xf32> {{
        %0 = sdy.sharding_constraint %arg0 <@mesh, [{{"x"}}, {{}}]> : tensor<7x4xf32>
        %1 = stablehlo.abs %0 : tensor<7x4xf32>
        %2 = stablehlo.pad %1, %arg1, low = [{low}, 0], high = [{high}, 0], interior = [{interior}, 0]
          : (tensor<7x4xf32>, tensor<f32>) -> tensor<{size}x4xf32>
        %3 = sdy.sharding_constraint %2 <@mesh, [{{"x"}}, {{}}]> : tensor<{size}x4xf32>
        return %3 : tensor<{size}x4xf32>
      }}""")


@pytest.mark.parametrize(("start", "limit", "stride"), [(0, 5, 1), (1, 7, 1), (0, 7, 2), (2, 7, 3), (1, 6, 1)])
def test_slice_of_an_uneven_dimension(start: int, limit: int, stride: int):
    size = -((start - limit) // stride)
    warnings_of(f"""
      func.func @main(%arg0: tensor<7x4xf32>) -> tensor<{size}x4xf32> {{
        %0 = sdy.sharding_constraint %arg0 <@mesh, [{{"x", "y"}}, {{}}]> : tensor<7x4xf32>
        %1 = stablehlo.slice %0 [{start}:{limit}:{stride}, 0:4] : (tensor<7x4xf32>) -> tensor<{size}x4xf32>
        %2 = sdy.sharding_constraint %1 <@mesh, [{{"x"}}, {{}}]> : tensor<{size}x4xf32>
        return %2 : tensor<{size}x4xf32>
      }}""")


def test_windows_side_by_side_stay_on_their_devices():
    windows = "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>"
    assert not warnings_of(f"""
      func.func @main(%arg0: tensor<8x4xf32>[x, y], %arg1: tensor<f32>) -> tensor<4x2xf32>[x, y] {{
        %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{{{windows}}}> {SUM}
          : (tensor<8x4xf32>, tensor<f32>) -> tensor<4x2xf32>
        return %0 : tensor<4x2xf32>
      }}""")


# Each: image size, then the window's size, stride and padding along both dimensions.
POOLS = [
    (8, 3, 1, (1, 1), (1, 1)),
    (8, 3, 2, (1, 1), (0, 1)),
    (16, 3, 2, (0, 1), (2, 2)),
    (7, 3, 1, (1, 1), (0, 0)),
    (13, 4, 3, (2, 1), (1, 3)),
    (8, 2, 2, (-1, 1), (1, -1)),
]


@covering
@pytest.mark.parametrize(("size", "window", "stride", "rows", "columns"), POOLS)
@pytest.mark.parametrize("order", ["GE", "LT"])
def test_gradient_of_a_padded_pool(
    size: int, window: int, stride: int, rows: tuple[int, int], columns: tuple[int, int], order: str
):
    """The maximum is never selected from the padding, even if all numbers are negative or NaN."""
    places = [(size + sum(padding) - window) // stride + 1 for padding in (rows, columns)]
    program = module(f"""
      func.func @main(%arg0: tensor<{size}x{size}xf32>, %arg1: tensor<{places[0]}x{places[1]}xf32>, %arg2: tensor<f32>)
          -> tensor<{size}x{size}xf32> {{
        %0 = sdy.sharding_constraint %arg0 <@mesh, [{{"x"}}, {{"y"}}]> : tensor<{size}x{size}xf32>
        %1 = "stablehlo.select_and_scatter"(%0, %arg1, %arg2) <{{window_dimensions = array<i64: {window}, {window}>,
            window_strides = array<i64: {stride}, {stride}>,
            padding = dense<[[{rows[0]}, {rows[1]}], [{columns[0]}, {columns[1]}]]> : tensor<2x2xi64>}}> ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %2 = stablehlo.compare {order}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %2 : tensor<i1>
        }}, {SUM[1:-1]}) : (tensor<{size}x{size}xf32>, tensor<{places[0]}x{places[1]}xf32>, tensor<f32>)
          -> tensor<{size}x{size}xf32>
        return %1 : tensor<{size}x{size}xf32>
      }}""")
    random = np.random.default_rng(0)
    image = random.choice(
        np.array([-np.inf, -3, -2, -1, np.nan], np.float32), (size, size), p=[0.5, 0.1, 0.1, 0.1, 0.2]
    )
    arrays = [image, random.integers(1, 100, places).astype(np.float32), np.float32(1000)]
    whole = sdy.interpret(program, *arrays)
    with capture() as diagnostics:
        sdy.propagate(program)
        sdy.partition(program)
    assert_same(sdy.interpret(program, *arrays), whole, tolerance=0)
    assert not diagnostics


@pytest.mark.parametrize("element", ["i8", "ui16", "i64", "f32"])
def test_xla_makes_random_bits_of_any_type(element: str):
    program = module(
        f"""
      func.func @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<8x6x{element}>[x,]) {{
        %0:2 = stablehlo.rng_bit_generator %arg0, algorithm = THREE_FRY
          : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x6x{element}>)
        return %0#0, %0#1 : tensor<2xui64>, tensor<8x6x{element}>
      }}""",
        'sdy.mesh @mesh = <["x"=2, "y"=2]>',
    )
    key = np.array([5, 7], np.uint64)
    whole = sdy.interpret(program, key)
    with capture():
        sdy.propagate(program)
        parts = sdy.compile(program)(key)
    for result, wanted in zip(parts, whole, strict=True):
        assert np.asarray(result).tobytes() == wanted.tobytes()


def test_one_device_draws_random_numbers_for_all():
    text = """
      func.func @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<8x4xf32>[x, y], tensor<8xf32>) {
        %0 = stablehlo.constant dense<[8, 4]> : tensor<2xi64>
        %1 = stablehlo.rng %arg0, %arg1, %0, distribution = UNIFORM
          : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>
        %2 = stablehlo.constant dense<8> : tensor<1xi64>
        %3 = stablehlo.rng %arg0, %arg1, %2, distribution = UNIFORM
          : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
        return %1, %3 : tensor<8x4xf32>, tensor<8xf32>
      }"""
    program = module(text, 'sdy.mesh @mesh = <["x"=2, "y"=2]>')
    with capture() as diagnostics:
        sdy.propagate(program)
        parts, everywhere = sdy.compile(program)(np.float32(2), np.float32(3))
    assert sum("is drawn on every device" in diagnostic.message for diagnostic in diagnostics) == 2
    assert len(np.unique(parts)) > 30
    assert ((parts >= 2) & (parts < 3)).all()
    assert len({shard.data.tobytes() for shard in everywhere.addressable_shards}) == 1


@pytest.mark.parametrize("name", ["gradient of a normalisation", "normalisation of batches", "slices at indices"])
def test_devices_compute_their_parts_through_xla(name: str):
    """XLA clamps the indices of a sharded slice."""
    program = module(IN_PARTS[name], 'sdy.mesh @mesh = <["x"=2, "y"=2]>')
    arrays = random_arrays(program)
    whole = sdy.interpret(program, *arrays)
    sdy.propagate(program)
    assert_same(sdy.compile(program)(*arrays), whole, tolerance=1e-5)
