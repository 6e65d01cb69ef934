"""Huge sizes in a text: nothing of such a size is enumerated, or the program is refused at once.

Each program runs in a process with 2 GB and 10 seconds.
"""

from collections.abc import Iterator

import pytest

from mutation_campaign import PIPELINES, Worker

_SPLIT = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'


def program(mesh: str, size: int, body: str, type_: str = "f32") -> str:
    """Return a program on a vector `%x` of that size, sharded over the axis "x" of the mesh, as is its result."""
    vector = f"tensor<{size}x{type_}>"
    return f"""
        sdy.mesh @mesh = <[{mesh}]>
        func.func @main(%x: {vector} {_SPLIT}) -> ({vector} {_SPLIT}) {{
          {body.format(vector=vector, size=size, last=size - 1, half=size // 2)}
          return %r : {vector}
        }}
    """


SLICE = """
          %0 = stablehlo.slice %x [1:{size}] : ({vector}) -> tensor<{last}xf32>
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %r = stablehlo.pad %0, %z, low = [1], high = [0], interior = [0]
              : (tensor<{last}xf32>, tensor<f32>) -> {vector}
"""
CONSTANT = """
          %0 = stablehlo.constant dense<1.0> : {vector}
          %r = stablehlo.add %x, %0 : {vector}
"""
WINDOWS = """
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %r = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 3>,
              padding = dense<[[1, 1]]> : tensor<1x2xi64>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %s = stablehlo.add %a, %b : tensor<f32>
              stablehlo.return %s : tensor<f32>
          }}) : ({vector}, tensor<f32>) -> {vector}
"""
INDEXED = """
          %i = stablehlo.constant dense<{last}> : tensor<5x1xi64>
          %0 = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
              start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}>
              : ({vector}, tensor<5x1xi64>) -> tensor<5xf32>
          %1 = "stablehlo.scatter"(%x, %i, %0) <{{scatter_dimension_numbers = #stablehlo.scatter<
              inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              stablehlo.return %b : tensor<f32>
          }}) : ({vector}, tensor<5x1xi64>, tensor<5xf32>) -> {vector}
          %r = stablehlo.negate %1 : {vector}
"""
REDUCED = """
          %z = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %z) applies stablehlo.multiply across dimensions = [0]
              : ({vector}, tensor<f32>) -> tensor<f32>
          %r = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> {vector}
"""
RESHAPED = """
          %0 = stablehlo.reshape %x : ({vector}) -> tensor<2x{half}xf32>
          %1 = stablehlo.negate %0 : tensor<2x{half}xf32>
          %r = stablehlo.reshape %1 : (tensor<2x{half}xf32>) -> {vector}
"""
BODIES = {
    "slice": SLICE,
    "constant": CONSTANT,
    "windows": WINDOWS,
    "indexed": INDEXED,
    "reduced": REDUCED,
    "reshaped": RESHAPED,
}

MANY = 2**62


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.stop()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_tensors_of_any_size(worker: Worker, body: str):
    for size in (2**40, 2**40 + 2):  # the latter is padded
        fared = worker.outcome(program('"x"=4', size, body), PIPELINES)
        assert fared.kind == "read", fared.details


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_more_devices_than_can_be_listed_are_refused(worker: Worker, body: str):
    for mesh, size in ((f'"x"={MANY}', MANY), (f'"x"=4, "y"={MANY}', MANY), (f'"x"={MANY}, "y"=2', 8)):
        assert worker.outcome(program(mesh, size, body), PIPELINES[:1]).kind == "read"
        assert worker.outcome(program(mesh, size, body), PIPELINES).kind == "refused"


def test_several_meshes_of_more_devices_than_can_be_listed_are_refused(worker: Worker):
    text = f"""
        sdy.mesh @one = <["x"={MANY}, "y"=3]>
        sdy.mesh @other = <["a"=3, "b"={MANY}]>
        func.func @main(%x: tensor<{MANY}x4xf32> {{sdy.sharding = #sdy.sharding<@one, [{{"x"}}, {{}}]>}})
            -> tensor<{MANY}x4xf32> {{
          %0 = sdy.sharding_constraint %x <@other, [{{"b"}}, {{}}]> : tensor<{MANY}x4xf32>
          return %0 : tensor<{MANY}x4xf32>
        }}"""
    assert worker.outcome(text, PIPELINES).kind == "refused"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_devices_of_a_large_cluster_are_taken(worker: Worker, body: str):
    fared = worker.outcome(program(f'"x"={2**14}', 2**40, body), PIPELINES)
    assert fared.kind == "read", fared.details


@pytest.mark.parametrize(
    "operation",
    [
        f"""stablehlo.rng %z, %z, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<{MANY}xi64>)
            -> tensor<8xf32>""",
        f"""
            "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 1>,
              padding = dense<1> : tensor<{MANY}x2xi64>}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              stablehlo.return %b : tensor<f32>
            }}) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
        """,
    ],
)
def test_attributes_and_operands_for_more_dimensions_than_tensors_have(worker: Worker, operation: str):
    text = f"""
        func.func @main(%x: tensor<8xf32>, %z: tensor<f32>, %s: tensor<{MANY}xi64>) {{
          %0 = {operation}
          return
        }}
    """
    assert worker.outcome(text, PIPELINES).kind == "refused"


def test_a_spatial_dimension_that_there_is_not(worker: Worker):
    convolution = "stablehlo.convolution(%x, %x) dim_numbers = [b, 9999999999, f]x[0, i, o]->[b, 0, f], window = {{}}"
    text = program('"x"=4', 8, f"%r = {convolution} : ({{vector}}, {{vector}}) -> {{vector}}")
    assert worker.outcome(text, PIPELINES).kind == "refused"
