"""The rules of predicted memory, each on a module of a few operations: fusion, order, and reuse of buffers."""

import pytest

import sdy
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.kernel_order import scheduled
from sdy.passes.spmd.costs.kernels import kernels_of

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


def materialized(body: str) -> list[str]:
    block = main_function(sdy.parse(function(body))).body.block
    return [kernel.operation.name.partition(".")[2] for kernel in scheduled(kernels_of([*block.ops]))]


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
            binary("s", "add", "a", "b")
            + dot("x", "a", "b")
            + binary("y", "add", "s", "x")
            + dot("z", "y", "b")
            + binary("r", "multiply", "s", "z")
            + returned("r"),
            ["add", "dot", "add", "dot", "multiply", "return"],
        ),
    ],
    ids=["operand of a product", "one user", "expensive", "cheap, several users", "two inputs, several users"],
)
def test_materialized_values(body: str, expected: list[str]) -> None:
    """Values are computed inside their users unless that repeats expensive work or reads more."""
    assert sorted(materialized(body)) == sorted(expected)


def test_fused_operations_read_late() -> None:
    """The product is alive until the kernel into which its only user is fused."""
    body = dot("x", "a", "b") + unary("n", "negate", "x") + dot("y", "x", "b") + dot("z", "y", "y")
    body += binary("r", "add", "n", "z") + dot("s", "r", "r") + returned("s")
    assert peak_bytes(sdy.parse(function(body))) == 5 * SIZE  # arguments, x, z, and y in the result's buffer


def test_products_run_before_what_needs_them() -> None:
    """Of two products, each runs just before its own user, whatever the order in the program."""
    body = "".join(dot(f"x{n}", "a", "b" if n else "a") + unary(f"e{n}", "tanh", f"x{n}") for n in range(2))
    names = materialized(body + dot("r", "e0", "e1") + returned("r"))
    assert names == ["dot", "tanh", "dot", "tanh", "dot", "return"]


def test_temporaries_use_the_buffers_of_results() -> None:
    body = dot("x", "a", "b") + dot("y", "x", "b") + returned("y")
    assert peak_bytes(sdy.parse(function(body))) == 4 * SIZE
    body = dot("x", "a", "b") + dot("y", "x", "b") + dot("z", "a", "a") + returned("y", "z")
    assert peak_bytes(sdy.parse(function(body, results=f"{T}, {T}"))) == 4 * SIZE


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
