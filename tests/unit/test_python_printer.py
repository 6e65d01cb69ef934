"""`sdy.to_python` on small programs: idioms, names, constants, and what JAX does not have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sdy
from samples import covering, sample
from sdy.passes.python.program import PRINTERS
from sdy.tools import sdy_opt

UNSUPPORTED = [
    "async_done",
    "async_start",
    "batch_norm_grad",
    "batch_norm_inference",
    "batch_norm_training",
    "broadcast",
    "collective_broadcast",
    "collective_reduce",
    "create_token",
    "after_all",
    "infeed",
    "outfeed",
    "send",
    "recv",
    "tuple",
    "get_tuple_element",
    "map",
    "dot",
    "einsum",
    "unary_einsum",
    "dynamic_broadcast_in_dim",
    "dynamic_conv",
    "dynamic_gather",
    "dynamic_iota",
    "dynamic_pad",
    "dynamic_reshape",
    "real_dynamic_slice",
    "set_dimension_size",
    "torch_index_select",
    "uniform_dequantize",
    "uniform_quantize",
    "cross-replica-sum",
    "replica_id",
    "return",
]
"""The operations of StableHLO that are printed as calls that raise, and terminators."""


def printed(text: str) -> str:
    return sdy.to_python(sdy.parse(text))


def body(text: str) -> str:
    """Return the printed function without its first line."""
    code = printed(text)
    return code[code.index("def ") :].partition("\n")[2].rstrip()


def called(text: str, *arguments: Any) -> Any:
    names: dict[str, Any] = {}
    exec(printed(text), names)
    return names["program"](*arguments)


def unary(operation: str, type_: str = "tensor<4x8xf32>", result: str = "") -> str:
    return (
        f"func.func @main(%x: {type_}) -> {result or type_} {{\n  %0 = {operation}\n  return %0 : {result or type_}\n}}"
    )


IDIOMS = {
    "product": (
        "func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {\n"
        "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :"
        " (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>\n  return %0 : tensor<4x2xf32>\n}",
        "    return x @ x_2",
    ),
    "product, transposed by nothing": (
        "func.func @main(%x: tensor<8x4xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {\n"
        "  %0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] :"
        " (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>\n"
        "  %1 = stablehlo.transpose %0, dims = [0, 1] : (tensor<4x2xf32>) -> tensor<4x2xf32>\n"
        "  return %1 : tensor<4x2xf32>\n}",
        "    return x.T @ x_2",
    ),
    "bias": (
        "func.func @main(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {\n"
        "  %0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>\n"
        "  %1 = stablehlo.add %x, %0 : tensor<4x8xf32>\n  return %1 : tensor<4x8xf32>\n}",
        "    return x + x_2",
    ),
    "column": (
        "func.func @main(%x: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<4x8xf32> {\n"
        "  %0 = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>\n"
        "  %1 = stablehlo.subtract %0, %x : tensor<4x8xf32>\n  return %1 : tensor<4x8xf32>\n}",
        "    return x_2[:, None] - x",
    ),
    "slice": (
        unary("stablehlo.slice %x [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>", result="tensor<4x4xf32>"),
        "    return x[:, 1::2]",
    ),
    "integer division": (
        unary("stablehlo.divide %x, %x : tensor<4x8xi32>", "tensor<4x8xi32>"),
        "    return lax.div(x, x)",
    ),
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_idioms(idiom: str) -> None:
    text, expected = IDIOMS[idiom]
    assert body(text) == expected


def test_every_operation_has_a_printer_or_is_known_to_have_none() -> None:
    from sdy.stablehlo import STABLEHLO

    missing = {op.name for op in STABLEHLO.operations} - {op.name for op in PRINTERS}
    assert missing == {f"stablehlo.{name}" for name in UNSUPPORTED}


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("f32", [1.5, -0.0, float("inf"), 0.1]),
        ("bf16", [1.5, -0.0, float("-inf"), 0.1]),
        ("f16", [65504.0, 0.001, 0.1, 1.0]),
        ("i8", [-128, 127, 0, 1]),
        ("ui32", [2**32 - 1, 0, 1, 2]),
        ("i1", ["true", "false", "true", "true"]),
    ],
)
def test_constants_are_exact(element: str, values: list[Any]) -> None:
    bits = {"inf": {"f32": "0x7F800000"}, "-inf": {"bf16": "0xFF80"}}
    words = [bits.get(str(value), {}).get(element, str(value)) for value in values]
    text = (
        f"func.func @main() -> tensor<4x{element}> {{\n"
        f"  %0 = stablehlo.constant dense<[{', '.join(words)}]> : tensor<4x{element}>\n"
        f"  return %0 : tensor<4x{element}>\n}}"
    )
    [expected] = sdy.interpret(sdy.parse(text))
    result = np.asarray(called(text))
    assert result.dtype == expected.dtype
    assert result.tobytes() == expected.tobytes()


def test_large_constants_are_exact() -> None:
    values = np.arange(200, dtype=np.float32) / 3
    text = (
        "func.func @main() -> tensor<200xf32> {\n"
        f'  %0 = stablehlo.constant dense<"0x{values.tobytes().hex().upper()}"> : tensor<200xf32>\n'
        "  return %0 : tensor<200xf32>\n}"
    )
    assert np.asarray(called(text)).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "name", ["class", "match", "lax", "1x", "a b", 'x\'"""', "\\n", "né", "", "print", "unsupported"]
)
def test_names_of_arguments_are_identifiers(name: str) -> None:
    escaped = "".join(f"\\{byte:02X}" for byte in name.encode())
    text = f'func.func @main(%x: tensor<2xf32> loc("{escaped}")) -> tensor<2xf32> {{\n  return %x : tensor<2xf32>\n}}'
    assert np.asarray(called(text, np.ones(2, np.float32))).tolist() == [1, 1]


def test_custom_calls_keep_their_configuration() -> None:
    call = "stablehlo.custom_call @my_kernel(%x) {{{}}} : (tensor<4x8xf32>) -> tensor<4x8xf32>"
    typed = printed(unary(call.format("api_version = 4 : i32, backend_config = {scale = 2.0 : f32, wide = true}")))
    assert "my_kernel(x, scale=np.float32(2.0), wide=True)" in typed
    old = printed(unary(call.format('backend_config = "a\\22b"')))
    assert "custom_call_api_version=1" in old
    assert r'legacy_backend_config="a\"b"' in old


def test_what_jax_lacks_raises() -> None:
    text = unary("stablehlo.custom_call @xla_python_cpu_callback(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>")
    assert "it calls a Python function, which is not in the program" in printed(text)
    with pytest.raises(NotImplementedError, match=r"stablehlo\.custom_call"):
        called(text, np.ones((4, 8), np.float32))


@pytest.mark.parametrize("reducer", ["add", "maximum"])
def test_reduce_scatters_of_any_reduction(reducer: str) -> None:
    text = f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%x: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}}) {{
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>]
      manual_axes={{"x", "y"}} (%y: tensor<2x8xf32>) {{
    %1 = "stablehlo.reduce_scatter"(%y) <{{scatter_dimension = 1 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
        replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.{reducer} %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }}) : (tensor<2x8xf32>) -> tensor<2x2xf32>
    sdy.return %1 : tensor<2x2xf32>
  }} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}"""
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert np.asarray(called(text, x)).tolist() == (x * (4 if reducer == "add" else 1)).tolist()


def test_results_of_layers_are_reshaped_behind_their_calls() -> None:
    """The operand of a reshape in a layer is a value of the function of the layer."""

    def layers(x: jax.Array) -> jax.Array:
        for _ in range(3):
            x = (jnp.tanh(jnp.sin(jnp.cos(x) * 2 + 1) - 0.5) * jnp.exp(x) / 3 + 1).reshape(4, 2)
            x = x.reshape(8)
        return x.reshape(2, 4).sum(0) + x.reshape(4, 2).T.reshape(2, 4)

    x = np.linspace(0, 1, 8, dtype=np.float32)
    text = sdy.to_python(sdy.from_jax(layers, x))
    names: dict[str, Any] = {}
    exec(text, names)
    assert "def layer(" in text
    np.testing.assert_allclose(names["layers"](x), layers(jnp.asarray(x)), rtol=1e-6)


@pytest.mark.parametrize("order", ["xxy", "xyy", "xyx", "xxx"])
def test_layers_with_one_value_in_two_places(order: str) -> None:
    def layer(first: jax.Array, second: jax.Array) -> jax.Array:
        for _ in range(8):
            first = jnp.cos(first)
        return first - second

    def layers(x: jax.Array, y: jax.Array) -> jax.Array:
        values = {"x": x, "y": y}
        first, second, third = (values[name] for name in order)
        return layer(layer(first, second), third)

    x, y = np.arange(4, dtype=np.float32), np.arange(4, 8, dtype=np.float32)
    names: dict[str, Any] = {}
    exec(sdy.to_python(sdy.from_jax(layers, x, y)), names)
    used = [value for name, value in (("x", x), ("y", y)) if name in order]
    np.testing.assert_allclose(names["layers"](*used), layers(jnp.asarray(x), jnp.asarray(y)), rtol=1e-6)


def test_loops_and_branches() -> None:
    text = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.add %y, %y : tensor<4xf32>
    %3 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %2 : tensor<i32>, tensor<4xf32>
  }
  %5 = "stablehlo.case"(%n) ({
    %6 = stablehlo.negate %0#1 : tensor<4xf32>
    stablehlo.return %6 : tensor<4xf32>
  }, {
    stablehlo.return %0#1 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}"""
    for count, expected in ((0, -1), (3, 8), (-2, 1)):
        assert np.asarray(called(text, np.ones(4, np.float32), np.int32(count))).tolist() == [expected] * 4


def test_option_of_sdy_opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(unary("stablehlo.tanh %x : tensor<4x8xf32>"))
    assert sdy_opt.main([str(program), "--emit-python"]) == 0
    assert "    return jnp.tanh(x)\n" in capsys.readouterr().out
    program.write_text("func.func private @f(tensor<2xf32>) -> tensor<2xf32>")
    assert sdy_opt.main([str(program), "--emit-python"]) == 2
    assert "there is no function @main to print" in capsys.readouterr().err


LIBRARY: dict[str, tuple[Callable[[jax.Array], jax.Array], str]] = {
    "largest": (lambda x: jnp.argmax(x, -1), "jnp.argmax(x, axis=1)"),
    "one hot": (lambda x: jax.nn.one_hot(x.astype("int32"), 8), "jax.nn.one_hot(x.astype(jnp.int32), num_classes=8)"),
    "sum so far": (lambda x: jnp.cumsum(x, 0), "jnp.cumsum(x, axis=0)"),
    "no elements": (lambda x: x[:2, :0, None] + np.ones((2, 0, 3), np.float32), "jnp.zeros((2, 0, 3), jnp.float32)"),
    "factor": (lambda x: jnp.linalg.cholesky(x[:, :4]), "jnp.linalg.cholesky(x[:, :4])"),
    "remainder of a number": (lambda x: x.astype("int32") % 3, "jnp.remainder(x.astype(jnp.int32), jnp.int32(3))"),
    "rows": (lambda x: x[jnp.array([2, 0])], "x.at["),
}
"""Functions of JAX, and what is printed for a call of them."""


@pytest.mark.parametrize("name", sample(LIBRARY, one_in=4))
def test_functions_of_jax_are_called_by_name(name: str) -> None:
    function, expected = LIBRARY[name]
    x = jnp.arange(32.0).reshape(4, 8) % 5 + 10 * jnp.eye(4, 8)
    text = sdy.to_python(sdy.from_jax(jax.jit(function).lower(x)), "program")
    assert expected in text
    assert text.count("def ") == 1
    names: dict[str, Any] = {}
    exec(text, names)
    np.testing.assert_array_equal(names["program"](x), function(x))


def test_functions_of_jax_are_those_of_the_mode_of_the_file() -> None:
    x = jnp.array([3, 1, 2], "int32")
    with jax.enable_x64(True):
        lowered = jax.jit(lambda x, y: (jnp.argsort(x).astype("int32"), y + 1.0)).lower(x, np.float64(2))
    text = sdy.to_python(sdy.from_jax(lowered), "program")
    names: dict[str, Any] = {}
    with jax.enable_x64(True):
        exec(text, names)
        order, _ = jax.jit(names["program"])(x, np.float64(2))
    jax.config.update("jax_enable_x64", False)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, [1, 2, 0])


@pytest.mark.parametrize("dtype", sample(["int8", "bfloat16", "uint8", "float32", "int16"], one_in=3))
def test_numbers_do_not_widen_arrays(dtype: str) -> None:
    x = jnp.arange(8).astype(dtype)
    text = sdy.to_python(sdy.from_jax(jax.jit(lambda x: (x % 3, x // 3, jnp.clip(x, 1, 5))).lower(x)), "program")
    names: dict[str, Any] = {}
    exec(text, names)
    for result, expected in zip(names["program"](x), (x % 3, x // 3, jnp.clip(x, 1, 5)), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_other_functions_with_a_name_of_jax_are_printed() -> None:
    @jax.jit
    def cumsum(x: jax.Array) -> jax.Array:
        y = jnp.sin(x) * jnp.cos(x) - jnp.tan(x)
        return y * y + y

    text = sdy.to_python(sdy.from_jax(jax.jit(lambda x: cumsum(x) + cumsum(x + 1)).lower(jnp.ones(8))))
    assert "def cumsum(x):" in text
    assert "jnp.cumsum" not in text


ROWS: dict[str, tuple[Callable[[jax.Array, jax.Array], jax.Array], str]] = {
    "of a table": (lambda x, i: x[i], "x.at[i].get(mode="),
    "of columns": (lambda x, i: x[:, i], "x.at[:, i].get(mode="),
    "one": (lambda x, i: x[:, i[0]], "x.at[:, i[0]]"),
    "in two dimensions": (lambda x, i: x[i.reshape(2, 1)], "x.at[reshape].get(mode="),
    "added": (lambda x, i: x.at[i].add(x[:2]), "x.at[i].add("),
    "set in columns": (lambda x, i: x.at[:, i].set(1.0), "x.at[:, i].set("),
    "from the end": (lambda x, i: x.at[i].get(wrap_negative_indices=False), "wrap_negative_indices=False"),
    "windows": (lambda x, i: jax.lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), "lax.dynamic_slice"),
    "corners": (lambda x, i: x[i, i], "lax.gather"),
}
"""Functions of a table and of indices, and what is printed for them."""


@covering
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("indices", [[0, 3], [-1, 2], [-4, -5], [9, 3]])
def test_rows_are_read_and_written_by_index(name: str, indices: list[int]) -> None:
    function, expected = ROWS[name]
    x, i = jnp.arange(20.0).reshape(4, 5), jnp.array(indices, "int32")

    def program(x: jax.Array, i: jax.Array) -> jax.Array:
        return function(x, i)

    text = sdy.to_python(sdy.from_jax(jax.jit(program).lower(x, i)))
    assert expected in text
    names: dict[str, Any] = {}
    exec(text, names)
    np.testing.assert_array_equal(names["program"](x, i), function(x, i))


@pytest.mark.parametrize(
    "program", [jnp.tanh, jax.jit(jnp.tanh).lower(1.0), sdy.jit(jnp.tanh).lower(1.0), "module {}"], ids=type
)
def test_what_is_no_module_is_refused_with_the_ways_to_print_it(program: Any) -> None:
    with pytest.raises(TypeError, match=r"not \w+; sdy\.to_python\(sdy\.from_jax\(f, x\)\) .* sdy\.jit\(f\)\.lower"):
        sdy.to_python(program)
