"""The rules of predicted memory, each on a module of a few operations: fusion, order, and reuse of buffers."""

from random import Random

import jax
import jax.numpy as jnp
import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

import sdy
from sdy.dialect.attributes import ORDERS
from sdy.ir.walking import operations_of
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.properties import value_bytes
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.buffers import Allocation, Buffer, LiveRange
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.kernel_dependences import inputs_of
from sdy.passes.spmd.costs.kernel_order import scheduled
from sdy.passes.spmd.costs.kernels import kernels_of
from sdy.passes.spmd.costs.result_buffers import outside_results
from sdy.stablehlo.control_flow import OptimizationBarrierOp

SIZE = 1024 * 4
"""Bytes of a tensor<32x32xf32>."""
T = "tensor<32x32xf32>"
SCALAR = "tensor<f32>"
ALIAS = "{tf.aliasing_output = 0 : i32}"


def function(body: str, *, arguments: str = f"%a: {T}, %b: {T}", results: str = T) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def dot(name: str, lhs: str, rhs: str) -> str:
    return f"%{name} = stablehlo.dot %{lhs}, %{rhs} : ({T}, {T}) -> {T}\n"


def unary(name: str, kind: str, operand: str) -> str:
    return f"%{name} = stablehlo.{kind} %{operand} : {T}\n"


def binary(name: str, kind: str, lhs: str, rhs: str) -> str:
    return f"%{name} = stablehlo.{kind} %{lhs}, %{rhs} : {T}\n"


def returned(*names: str) -> str:
    return f"return {', '.join(f'%{name}' for name in names)} : {', '.join([T] * len(names))}"


def materialized(body: str, backend: Backend) -> list[str]:
    block = main_function(sdy.parse(function(body))).body.block
    kernels = scheduled(kernels_of([*block.ops], backend), backend)
    return [kernel.operation.name.partition(".")[2] for kernel in kernels]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (unary("e", "exponential", "a") + dot("r", "e", "b") + returned("r"), ["exponential", "dot", "return"]),
        (unary("n", "negate", "a") + binary("r", "add", "n", "b") + returned("r"), ["add", "return"]),
        (
            unary("e", "exponential", "a") + dot("x", "e", "b") + binary("r", "add", "e", "x") + returned("r"),
            ["exponential", "dot", "add", "return"],
        ),
        (
            unary("n", "negate", "a")
            + dot("x", "a", "b")
            + binary("y", "add", "n", "x")
            + dot("z", "y", "b")
            + binary("r", "multiply", "n", "z")
            + returned("r"),
            ["dot", "add", "dot", "multiply", "return"],
        ),
        (
            f"%s = stablehlo.slice %a [0:32, 0:16] : ({T}) -> tensor<32x16xf32>\n"
            f"%r = stablehlo.concatenate %s, %s, dim = 1 : (tensor<32x16xf32>, tensor<32x16xf32>) -> {T}\n"
            f"%e = stablehlo.negate %r : {T}\n" + returned("e"),
            ["negate", "return"],
        ),
        (
            f"%w = stablehlo.concatenate %a, %a, %a, %a, dim = 1 : ({T}, {T}, {T}, {T}) -> tensor<32x128xf32>\n"
            "%e = stablehlo.negate %w : tensor<32x128xf32>\n"
            f"%r = stablehlo.slice %e [0:32, 0:32] : (tensor<32x128xf32>) -> {T}\n" + returned("r"),
            ["concatenate", "slice", "return"],
        ),
        (
            binary("s", "add", "a", "b")
            + dot("x", "a", "b")
            + binary("y", "add", "s", "x")
            + dot("z", "y", "b")
            + binary("r", "multiply", "s", "z")
            + returned("r"),
            ["add", "dot", "add", "dot", "multiply", "return"],
        ),
    ],
    ids=[
        "operand of a product",
        "one user",
        "expensive",
        "cheap, several users",
        "short rows",
        "long rows",
        "two inputs, several users",
    ],
)
@pytest.mark.parametrize("backend", Backend)
def test_materialized_values(body: str, expected: list[str], backend: Backend) -> None:
    """Values are computed inside their users unless that repeats expensive work or reads more."""
    assert sorted(materialized(body, backend)) == sorted(expected)


def test_fused_operations_read_late() -> None:
    """The product is alive until the kernel into which its only user is fused."""
    body = dot("x", "a", "b") + unary("n", "negate", "x") + dot("y", "x", "b") + dot("z", "y", "y")
    body += binary("r", "add", "n", "z") + dot("s", "r", "r") + returned("s")
    assert peak_bytes(sdy.parse(function(body))) == 5 * SIZE  # arguments, x, z, and y in the result's buffer


def test_products_run_before_what_needs_them() -> None:
    """Of two products, each runs just before its own user, whatever the order in the program; not so on CPUs."""
    body = "".join(dot(f"x{n}", "a", "b" if n else "a") + unary(f"e{n}", "tanh", f"x{n}") for n in range(2))
    body += dot("r", "e0", "e1") + returned("r")
    assert materialized(body, Backend.ACCELERATOR) == ["dot", "tanh", "dot", "tanh", "dot", "return"]
    assert materialized(body, Backend.CPU) == ["dot", "dot", "tanh", "tanh", "dot", "return"]


@pytest.mark.parametrize(("backend", "buffers"), [(Backend.ACCELERATOR, 4), (Backend.CPU, 5)])
def test_temporaries_use_the_buffers_of_results(backend: Backend, buffers: int) -> None:
    """The second result has no free buffer for `x` if it is computed before the first one, as on CPUs."""
    body = dot("x", "a", "b") + dot("y", "x", "b") + returned("y")
    assert peak_bytes(sdy.parse(function(body)), backend) == 4 * SIZE
    body = dot("x", "a", "b") + dot("y", "x", "b") + dot("z", "a", "a") + returned("y", "z")
    assert peak_bytes(sdy.parse(function(body, results=f"{T}, {T}")), backend) == buffers * SIZE


@pytest.mark.parametrize(("alias", "buffers"), [("", 3), (ALIAS, 2)])
def test_updates_in_donated_buffers(alias: str, buffers: int) -> None:
    """An elementwise update is computed in the buffer of the donated argument."""
    body = f"%c = stablehlo.constant dense<0.9> : {T}\n" + binary("m", "multiply", "a", "c")
    module = sdy.parse(
        function(body + binary("r", "add", "m", "b") + returned("r"), arguments=f"%a: {T} {alias}, %b: {T}")
    )
    assert peak_bytes(module) == buffers * SIZE


def test_a_donated_buffer_is_not_free_before_its_last_use() -> None:
    """A product cannot overwrite its operand: it is copied to the donated buffer in the end."""
    module = sdy.parse(function(dot("r", "a", "b") + returned("r"), arguments=f"%a: {T} {ALIAS}, %b: {T}"))
    assert peak_bytes(module) == 3 * SIZE


def test_a_donated_argument_is_copied_if_a_reader_need_not_run_before_its_update() -> None:
    """Nothing but the order of the kernels makes the update of the weights `%a` follow the gradient of the input."""
    gradient, update = dot("g", "b", "a"), binary("r", "add", "a", "b")
    arguments = f"%a: {T} {ALIAS}, %b: {T}"
    both = sdy.parse(function(gradient + update + returned("r", "g"), arguments=arguments, results=f"{T}, {T}"))
    assert peak_bytes(both) == 4 * SIZE
    body = gradient + binary("r", "add", "a", "g") + returned("r")
    assert peak_bytes(sdy.parse(function(body, arguments=arguments))) == 3 * SIZE


def all_reduce(name: str, operand: str, kind: str = "add") -> str:
    return f"""%{name} = "stablehlo.all_reduce"(%{operand}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%l: {SCALAR}, %m: {SCALAR}):
        %s = stablehlo.{kind} %l, %m : {SCALAR}
        stablehlo.return %s : {SCALAR}
    }}) : ({T}) -> {T}
    """


@pytest.mark.parametrize(("operands", "temporaries"), [("ab", 4), ("ar", 3)], ids=["independent", "dependent"])
def test_independent_all_reduces_are_combined(operands: str, temporaries: int) -> None:
    """Operands and results of both are in memory together; the last two, a sum and a product, need no more."""
    first, second = operands
    body = unary("x", "tanh", first) + all_reduce("r", "x") + unary("y", "tanh", second) + all_reduce("s", "y")
    body += binary("t", "add", "r", "s") + dot("u", "t", "t")
    assert peak_bytes(sdy.parse(function(body + returned("u")))) == (2 + temporaries) * SIZE


@pytest.mark.parametrize("seed", range(20))
def test_combined_all_reduces_run_after_what_they_need(seed: int) -> None:
    """Both kinds are combined, and each may need the other: one sum needs a maximum, another sum leads to it."""
    random, values, body = Random(seed), ["a"], ""
    for number in range(8):
        body += all_reduce(f"r{number}", random.choice(values), random.choice(["add", "maximum"]))
        values.append(f"r{number}")
    body += returned(*values[1:])
    block = main_function(sdy.parse(function(body, results=", ".join([T] * 8)))).body.block
    for backend in Backend:
        kernels = scheduled(kernels_of([*block.ops], backend), backend)
        for index, needed in enumerate(inputs_of(kernels)):
            assert all(other < index for other in needed)


def product(lhs: str, batching: str, contracting: str, result: str) -> str:
    numbers = f"batching_dims = [{batching}] x [0], contracting_dims = [{contracting}] x [1]"
    types = f"(tensor<{lhs}xf32>, tensor<8x16x8xf32>) -> tensor<{result}xf32>"
    return f"%r = stablehlo.dot_general %a, %b, {numbers} : {types}\n"


def gather(dimension: int, result: str) -> str:
    return f"""%r = "stablehlo.all_gather"(%a) <{{
      all_gather_dim = {dimension} : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
    }}> : ({T}) -> tensor<{result}xf32>
    """


def convolution(dimensions: str) -> str:
    window = "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    types = "(tensor<8x8x8xf32>, tensor<1x8x8xf32>) -> tensor<8x8x8xf32>"
    return f"%r = stablehlo.convolution(%a, %b) dim_numbers = {dimensions}, {window} : {types}\n"


A_TO_A = f"""%r = "stablehlo.all_to_all"(%a) <{{
  split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64,
  replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
}}> : ({T}) -> tensor<16x64xf32>
"""
LAYOUTS = {
    "product, batches first": (product("8x4x16", "0", "2", "8x4x8"), "8x4x16", "8x16x8", "8x4x8", 0),
    "product, contracted before free": (product("8x16x4", "0", "1", "8x4x8"), "8x16x4", "8x16x8", "8x4x8", 0),
    "product, batches last": (product("4x16x8", "2", "1", "8x4x8"), "4x16x8", "8x16x8", "8x4x8", 2048),
    "gather of rows": (gather(0, "64x32"), "32x32", "1", "64x32", 0),
    "gather of columns": (gather(1, "32x64"), "32x32", "1", "32x64", 2 * SIZE),
    "convolution, features last": (convolution("[b, 0, f]x[0, i, o]->[b, 0, f]"), "8x8x8", "1x8x8", "8x8x8", 0),
    "convolution, features first": (
        convolution("[b, f, 0]x[0, i, o]->[b, f, 0]"),
        "8x8x8",
        "1x8x8",
        "8x8x8",
        2048,
    ),
    "all-to-all": (A_TO_A, "32x32", "1", "16x64", SIZE),
}
"""Operations of two arguments: the types of those and of the result, and the bytes of copies in other layouts.

Copies of operands are in the buffer of the result."""


@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_in_the_layout_that_an_operation_requires(name: str) -> None:
    body, *types, copies = LAYOUTS[name]
    a, b, result = (f"tensor<{type_}xf32>" for type_ in types)
    module = sdy.parse(function(f"{body} return %r : {result}", arguments=f"%a: {a}, %b: {b}", results=result))
    block = main_function(module).body.block
    assert block.last_op is not None
    assert peak_bytes(module) - sum(map(value_bytes, (*block.args, *block.last_op.operands))) == copies


def test_results_that_are_arguments_or_returned_twice_are_copies() -> None:
    body = unary("t", "tanh", "a") + returned("t", "t", "b")
    assert peak_bytes(sdy.parse(function(body, results=f"{T}, {T}, {T}"))) == 5 * SIZE


def test_views_and_barriers_take_no_memory() -> None:
    body = dot("x", "a", "b") + f"%f = stablehlo.reshape %x : ({T}) -> tensor<1024xf32>\n"
    body += f"%g = stablehlo.reshape %f : (tensor<1024xf32>) -> {T}\n%o = stablehlo.optimization_barrier %g : {T}\n"
    body += f"%t = stablehlo.transpose %o, dims = [1, 0] : ({T}) -> {T}\n" + dot("y", "t", "b") + dot("z", "y", "b")
    assert peak_bytes(sdy.parse(function(body + returned("z")))) == 4 * SIZE


def loop(body: str) -> str:
    return f"""
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, {T}
      cond {{
        %end = stablehlo.constant dense<9> : tensor<i32>
        %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        {body}
        stablehlo.return %next, %y : tensor<i32>, {T}
      }}
      return %r#1 : {T}"""


@pytest.mark.parametrize(
    ("body", "buffers"),
    [
        (unary("y", "tanh", "x"), 3),
        (dot("y", "x", "b"), 4),
        (dot("t", "x", "b") + dot("y", "t", "b"), 4),
    ],
    ids=["elementwise", "product", "two products"],
)
def test_loops_keep_a_value_in_one_buffer(body: str, buffers: int) -> None:
    """The next value is computed in the buffer of the last one where nothing reads that any more."""
    small = 16
    assert 0 <= peak_bytes(sdy.parse(function(loop(body)))) - buffers * SIZE < small


def test_branches_write_the_results() -> None:
    body = f"""
      %p = stablehlo.constant dense<true> : tensor<i1>
      %r = "stablehlo.if"(%p) ({{
        {dot("x", "a", "b")} stablehlo.return %x : {T}
      }}, {{
        {dot("y", "b", "a")} stablehlo.return %y : {T}
      }}) : (tensor<i1>) -> {T}
      return %r : {T}"""
    assert peak_bytes(sdy.parse(function(body))) == 3 * SIZE


def test_the_order_of_less_memory_is_taken_where_barriers_order_kernels() -> None:
    """A depth-first search runs the gradients of recomputed layers last, a list scheduler when they free memory."""

    @jax.checkpoint
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return x + jnp.tanh(x @ w) @ w.T

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in params:
            x = layer(x, w)
        return jnp.mean(x**2)

    module = sdy.from_jax(
        jax.grad(loss), [jax.ShapeDtypeStruct((32, 256), "float32")] * 6, jax.ShapeDtypeStruct((2048, 32), "float32")
    )
    for barrier in operations_of(module, OptimizationBarrierOp):
        barrier.attributes[ORDERS] = UnitAttr()
    activation, residual = 2048 * 256 * 4, 2048 * 32 * 4
    assert peak_bytes(module) < 6 * residual + 5 * activation


def buffer(value: SSAValue, *ranges: tuple[int, int]) -> Buffer:
    found = Buffer(value)
    found.ranges = [LiveRange(value, begin, end) for begin, end in ranges]
    return found


def test_a_temporary_takes_the_first_buffer_of_a_result_that_is_free_at_all_of_its_times() -> None:
    num_times, random = 37, Random(0)
    main = main_function(sdy.parse(function(returned("a"))))
    value = main.body.block.args[0]

    def some() -> Buffer:
        begins = sorted(random.sample(range(0, num_times - 3, 4), random.randint(1, 2)))
        return buffer(value, *((begin, begin + random.randint(0, 3)) for begin in begins))

    results, temporaries = [some() for _ in range(5)], [some() for _ in range(60)]
    found = outside_results(Allocation([main] * num_times, [], [], [], [], results, temporaries), value_bytes)

    def times(each: Buffer) -> set[int]:
        return {time for live in each.ranges for time in range(live.begin, live.end + 1)}

    in_use, outside = [times(each) for each in results], list[Buffer]()
    for each in temporaries:
        free = next((used for used in in_use if used.isdisjoint(times(each))), None)
        if free is None:
            outside.append(each)
        else:
            free |= times(each)
    assert found == outside
    assert 0 < len(outside) < len(temporaries)
