"""`sdy.account`: the predicted costs of a program, and the costs in XLA's compiled program."""

from collections.abc import Callable
from importlib.metadata import version
from inspect import getsourcelines
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.diagnostics import Location
from sdy.passes.account.account import Account, Received
from sdy.passes.jax.hlo_received import bytes_received
from sdy.tools import sdy_run

PROGRAM = """\
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x16xf32>, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot %a, %b : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.negate %c : tensor<8x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}
"""
RESULT = 8 * 16 * 4
ALL_REDUCE = 2 * RESULT * 3 / 4
"""Groups of 4: three quarters of the result, twice."""
ALL_GATHER = RESULT / 2
"""The half that a device lacks."""


def propagated(text: str = PROGRAM, name: str = "program.mlir"):
    module = sdy.parse(text, name)
    sdy.propagate(module)
    return module


def step(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


ARGUMENTS = (jax.ShapeDtypeStruct((8, 64), jnp.float32), jax.ShapeDtypeStruct((64, 16), jnp.float32))


def jitted():
    return sdy.jit(step, mesh=jax.make_mesh((8,), ("x",)), in_shardings=(P(None, "x"), P("x")), out_shardings=P())


def test_bytes_by_collective_and_line():
    account = sdy.account(propagated())
    assert account.received == (
        Received("all-reduce", Location("program.mlir", 6, 8), 1, ALL_REDUCE),
        Received("all-gather", Location("program.mlir", 7, 8), 1, ALL_GATHER),
    )
    assert account.bytes_received == ALL_REDUCE + ALL_GATHER


def test_predicted_costs_equal_compiled_costs():
    account = sdy.account(propagated())
    assert account.compiled is not None
    assert account.compiled.bytes_received == account.bytes_received
    assert {kind: traffic.count for kind, traffic in account.compiled.collectives.items()} == {
        "all-reduce": 1,
        "all-gather": 1,
    }
    assert len(account.compiled.devices) == 8
    assert account.compiled.memory is not None
    assert account.memory == pytest.approx(account.compiled.memory, rel=0.5)


def test_collectives_of_one_source_line_are_one_entry():
    """Two sums on one line of Python, one of them in a loop of three iterations."""

    def twice(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, y: y + (x * y).sum(), x.sum())

    mesh = jax.make_mesh((8,), ("x",))
    account = sdy.account(sdy.jit(twice, mesh=mesh, in_shardings=P("x")), jnp.ones(16))
    assert [(line.collective, line.times) for line in account.received] == [("all-reduce", 3), ("all-reduce", 1)]
    assert {line.where and line.where.line for line in account.received} == {twice.__code__.co_firstlineno + 1}


def test_the_account_of_a_function_is_that_of_what_it_is_lowered_to():
    function = jitted()
    assert sdy.account(function, *ARGUMENTS) == sdy.account(function.lower(*ARGUMENTS))
    (line,) = sdy.account(function, *ARGUMENTS).received
    assert (line.collective, line.bytes) == ("all-reduce", 2 * RESULT * 7 / 8)
    assert line.where is not None
    assert Path(line.where.filename).name == Path(__file__).name


MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def multiply(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w  # a collective's line


def widen(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w.astype(jnp.float32)[::-1]  # a collective's line


def multiply_in_loop(x: jax.Array, w: jax.Array) -> jax.Array:
    def layer(y: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jnp.tanh(y @ w), None  # a collective's line

    return jax.lax.scan(layer, x, None, length=3)[0]


def multiply_in_shard_map(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.shard_map(jnp.dot, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"))(x, w)  # a collective's line


@pytest.mark.parametrize("function", [multiply, widen, multiply_in_loop, multiply_in_shard_map])
def test_the_all_gather_of_an_argument_has_the_line_of_the_operation_that_needs_it(
    function: Callable[[jax.Array, jax.Array], jax.Array],
):
    """JAX gives an argument a name, but no line."""
    lines, first = getsourcelines(function)
    marked = first + next(index for index, line in enumerate(lines) if "a collective's line" in line)
    x, w = jax.ShapeDtypeStruct((64, 16), jnp.bfloat16), jax.ShapeDtypeStruct((16, 16), jnp.bfloat16)
    account = sdy.account(sdy.jit(function, mesh=MESH, in_shardings=P("x")), x, w)
    assert account.received
    assert {line.where and line.where.line for line in account.received} == {marked}


def test_any_function_has_an_account():
    account = sdy.account(step, *ARGUMENTS)
    assert account.received == ()
    assert account.memory == (8 * 64 + 64 * 16) * 4 + RESULT
    assert account.compiled is not None
    assert account.compiled.memory == account.memory
    assert "received" in str(account)


def test_arguments_are_given_once():
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.account(propagated(), *ARGUMENTS)
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.account(jitted().lower(*ARGUMENTS), *ARGUMENTS)


def test_a_traced_program_has_the_account_of_its_function() -> None:
    traced = jitted().trace(*ARGUMENTS)
    assert str(sdy.account(traced)) == str(sdy.account(jitted(), *ARGUMENTS))
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.account(traced, *ARGUMENTS)


@pytest.mark.parametrize("jit", [jax.jit, sdy.jit])
def test_a_program_of_any_stage_has_the_module_of_its_function(jit: Any) -> None:
    function = jit(step)
    module = sdy.format(sdy.from_jax(function, *ARGUMENTS))
    for staged in (function.trace(*ARGUMENTS), function.lower(*ARGUMENTS)):
        assert sdy.format(sdy.from_jax(staged)) == module
        for of_arguments in (sdy.from_jax, sdy.account, sdy.lint, sdy.report):
            with pytest.raises(TypeError, match="already has its arguments"):
                of_arguments(staged, *ARGUMENTS)
        assert not sdy.diff(staged, function, *ARGUMENTS)


def test_a_program_of_a_block_has_the_module_of_its_function() -> None:
    with sdy.compiler() as compiler:
        jax.jit(step)(*(jnp.ones(each.shape, each.dtype) for each in ARGUMENTS))
    (program,) = (each for each in compiler.programs if each.name == "step")
    assert "stablehlo.dot_general" in sdy.format(sdy.from_jax(program))


@pytest.mark.parametrize("jit", [jax.jit, sdy.jit])
def test_a_compiled_program_is_an_error_that_names_what_has_an_account(jit: Any) -> None:
    compiled = jit(step).lower(*ARGUMENTS).compile()
    with pytest.raises(TypeError, match=r"expected a function, or the result of jax.jit\(f\).trace.*, not Compiled"):
        sdy.account(compiled)


def test_a_file_is_a_program(tmp_path: Path):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    received = sdy.account(sdy.parse(PROGRAM)).bytes_received
    assert sdy.account(path).bytes_received == sdy.account(str(path)).bytes_received == received
    assert not sdy.lint(str(path))
    assert str(path.name) in sdy.report(path).html
    assert "given to argument 2" in str(sdy.explain(path, "%1"))
    with pytest.raises(TypeError, match="already has its arguments"):
        sdy.account(path, *ARGUMENTS)
    with pytest.raises(sdy.DiagnosticError, match="cannot read"):
        sdy.account(tmp_path / "nothing.mlir")


def test_the_version_is_that_of_the_package():
    assert sdy.__version__ == version("sdy")


def test_costs_are_predicted_without_enough_devices():
    account = sdy.account(propagated(PROGRAM.replace('"x"=4', '"x"=32')))
    assert account.compiled is None
    assert account.bytes_received == 2 * RESULT * 31 / 32 + ALL_GATHER
    assert "too few for the mesh" in str(account)


LATE_READ = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %w: tensor<64x128xf32>,
    %big: tensor<64x256xf32>, %v: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<256x64xf32>, tensor<64x128xf32>) -> tensor<256x128xf32>
  %1 = stablehlo.tanh %0 : tensor<256x128xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [1]
      : (tensor<256x128xf32>, tensor<64x128xf32>) -> tensor<256x64xf32>
  %3 = stablehlo.dot_general %2, %big, contracting_dims = [1] x [0]
      : (tensor<256x64xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %4 = stablehlo.tanh %3 : tensor<256x256xf32>
  %5 = stablehlo.dot_general %4, %v, contracting_dims = [1] x [0]
      : (tensor<256x256xf32>, tensor<256x128xf32>) -> tensor<256x128xf32>
  %6 = stablehlo.multiply %5, %1 : tensor<256x128xf32>
  return %6 : tensor<256x128xf32>
}
"""
"""A program whose `%1` is read again after the peak."""


def test_sdy_run_recomputes_values_under_a_memory_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "late_read.mlir"
    path.write_text(LATE_READ)
    assert sdy_run.main([str(path), "--memory", "500K"]) == 0
    printed = capsys.readouterr()
    assert "recomputed" in printed.out
    assert "as compiled by XLA" not in printed.err
    assert "largest difference from the unpartitioned program" in printed.out


def test_the_text_is_what_sdy_run_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    assert sdy_run.main([str(path)]) == 0
    text = str(sdy.account(propagated(name=str(path))))
    assert text in capsys.readouterr().out
    assert repr(sdy.account(propagated(name=str(path)))) == text


def test_account_begins_with_the_needs_of_a_device():
    text = str(Account(None, {}, (Received("all-gather", None, 1, 872_326.0),), 2_138_116, lambda: None))
    assert "  each device   receives 852 KiB and needs 2.04 MiB of memory (predicted)\n" in text


def test_many_lines_are_added_up():
    lines = tuple(Received("all-gather", Location("program.py", 20 - n, 1), 2, 1000.0 - n) for n in range(13))
    text = str(Account(None, {}, lines, 0, lambda: None)).split("\n")
    shown = [line.split() for line in text if "program.py" in line or "others" in line]
    assert len(shown) == 11
    assert shown[0] == ["all-gather", "2", "1,000", "program.py:20:1"]
    assert shown[-1] == ["3", "others", "6", "2,967", "program.py:10,9,8"]


def test_a_row_names_the_arguments_that_are_resharded():
    def layers(ws: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in ws:
            x = jnp.tanh(x @ w)
        return x

    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(mesh, P("x"))
    ws = [jax.ShapeDtypeStruct((64, 64), "float32", sharding=sharding) for _ in range(3)]
    account = sdy.account(layers, ws, jax.ShapeDtypeStruct((4096, 64), "float32", sharding=sharding))
    (gathers,) = account.received
    assert gathers.arguments == ("ws[0]", "ws[1]", "ws[2]")
    assert "  ws[0..2]\n" in str(account)


ASYNCHRONOUS = """
ENTRY %main (x: f32[8]) -> f32[64] {
  %x = f32[8]{0} parameter(0)
  %s = (f32[8]{0}, f32[64]{0}) all-gather-start(%x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}
  ROOT %d = f32[64]{0} all-gather-done(%s)
}
"""


def test_an_asynchronous_collective_is_counted_once():
    assert bytes_received(ASYNCHRONOUS, 8) == 64 * 4 * 7 / 8


def test_for_more_devices_than_there_are_nothing_is_compiled():
    mesh = sdy.Mesh.of({"x": 4096})
    split = sdy.Sharding.of("x", None, mesh=mesh)
    account = sdy.account(sdy.jit(step, mesh=mesh, in_shardings=(split, None)), jnp.ones((8192, 8)), jnp.ones((8, 4)))
    assert account.compiled is None
    assert "too few for the mesh" in str(account)


def values_of_sort(x: jax.Array) -> jax.Array:
    return jax.lax.with_sharding_constraint(
        jax.lax.sort((x, jnp.cos(x)), num_keys=1, dimension=0)[0], NamedSharding(MESH, P())
    )


def sum_of_reductions(x: jax.Array) -> jax.Array:
    """Return one of two reductions in an operation: that of sums, which do not depend on the maxima."""
    zero, least = jnp.float32(0), jnp.float32(-jnp.inf)

    def both(a: Any, b: Any) -> tuple[jax.Array, jax.Array]:
        return a[0] + b[0], jnp.maximum(a[1], b[1])

    return jax.lax.reduce((x, jnp.cos(x)), (zero, least), both, (1,))[0]


VALUES: list[Callable[[Any], Any]] = [
    lambda x: jax.lax.top_k(x, 4)[0],
    lambda x: jax.lax.top_k(x, 4)[1],
    lambda x: jax.lax.approx_max_k(x, 4)[0],
    values_of_sort,
    sum_of_reductions,
    lambda x: jnp.partition(x, 3, 1)[:, :3],
]


@pytest.mark.parametrize("values", VALUES)
def test_devices_do_not_receive_what_nothing_reads(values: Callable[[Any], Any]) -> None:
    x = jax.ShapeDtypeStruct((16, 1024), jnp.float32)
    account = sdy.account(sdy.jit(values, in_shardings=NamedSharding(MESH, P(None, "x"))), x)
    assert account.compiled is not None
    assert account.bytes_received == account.compiled.bytes_received > 0


def test_a_mesh_without_axes_is_none() -> None:
    """JAX 0.12 declares one for random keys."""
    module = sdy.parse("""
        sdy.mesh @empty_mesh = <[]>
        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
          return %x : tensor<8xf32>
        }""")
    assert "mesh          none" in str(sdy.account(module))
