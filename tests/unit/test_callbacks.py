"""Python callbacks: called once, on one device, with unpartitioned arrays, as under `jax.jit`."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.jax.stages import Lowered

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
SPLIT = NamedSharding(MESH, P("x", "y"))
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def seen_by(program: Callable[[Callable[..., None]], Callable[..., Any]]) -> tuple[Any, list[Any]]:
    """Return the result of a program of `X`, and the calls of the function that it is built with."""
    calls: list[Any] = []
    run = sdy.jit(program(lambda *values: calls.append([np.asarray(value) for value in values])), in_shardings=SPLIT)
    result: Any = None
    for _ in range(2):
        calls.clear()
        result = run(X)
        jax.effects_barrier()
    return result, calls


def test_a_callback_sees_whole_arrays_once():
    def program(see: Callable[..., None]) -> Callable[..., Any]:
        def run(x: jax.Array) -> jax.Array:
            jax.debug.callback(see, x, x.sum())
            return x + 1

        return run

    result, ((whole, total),) = seen_by(program)
    np.testing.assert_array_equal(result, X + 1)
    np.testing.assert_array_equal(whole, X)
    assert total == X.sum()


def test_value_shared_by_two_callbacks_is_sent_once():
    """A check that raises an error is one callback, followed by another that reports the line."""

    @sdy.jit(mesh=MESH)
    def program(x: jax.Array) -> jax.Array:
        first = jax.pure_callback(np.sin, x, x)
        return jax.pure_callback(np.cos, x, first) + 1

    x = np.arange(8, dtype=np.float32)
    text = program.lower(x).device_text()
    assert text.count("stablehlo.all_reduce") == 1
    assert np.allclose(program(x), np.cos(np.sin(x)) + 1)


def test_callback_result_is_on_all_devices():
    def program(see: Callable[..., None]) -> Callable[..., Any]:
        def row(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            see(x)
            return np.asarray(2 * x)

        def run(x: jax.Array) -> jax.Array:
            return x + io_callback(row, x[0], x[0]) + jax.pure_callback(np.sin, x, x)

        return run

    result, calls = seen_by(program)
    np.testing.assert_allclose(result, X + 2 * X[0] + np.sin(X), rtol=1e-6)
    assert len(calls) == 1


def test_a_loop_calls_in_every_round():
    def program(see: Callable[..., None]) -> Callable[[Any], Any]:
        def round_(x: jax.Array, _: Any) -> tuple[jax.Array, None]:
            jax.debug.callback(see, x[0, 0])
            return x + 1, None

        return lambda x: lax.scan(round_, x, None, length=3)[0]

    _, calls = seen_by(program)
    assert sorted(float(value) for (value,) in calls) == [0, 1, 2]


def test_each_device_calls_in_a_manual_computation():
    def program(see: Callable[..., None]) -> Callable[..., Any]:
        def part(x: jax.Array) -> jax.Array:
            jax.debug.callback(see, x.sum())
            return x

        return jax.shard_map(part, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))

    _, calls = seen_by(program)
    assert sum(float(value) for (value,) in calls) == X.sum()
    assert len(calls) == 8


def test_program_text_with_callbacks_is_refused():
    """The program is text, without the callbacks that jax stores beside it."""
    lowered = sdy.jit(lambda x: jax.debug.print("{}", x[0, 0]), in_shardings=SPLIT).lower(X)
    assert "custom_call" in lowered.device_text()
    with pytest.raises(sdy.DiagnosticError, match="calls a Python function, which a module does not hold"):
        jax.jit(lowered.program)(jax.device_put(X, SPLIT))


def test_ordered_effects_are_in_order(capsys: pytest.CaptureFixture[str]):
    def run(x: jax.Array, unused: Any, y: jax.Array) -> jax.Array:
        def round_(index: jax.Array, x: jax.Array) -> jax.Array:
            jax.debug.print("round {}: {}", index, x, ordered=True)
            return x + io_callback(lambda y: (print(f"asked for {y}"), y)[1], y, y, ordered=True)

        return lax.fori_loop(0, 3, round_, x)

    def told(run: Any) -> tuple[float, float, list[str]]:
        results = float(run(1, 0, 5)), float(jax.jit(lambda x: run(run(x, 0, 1), 0, 2))(7))
        jax.effects_barrier()
        return (*results, capsys.readouterr().out.splitlines())

    given, expected = told(sdy.jit(run)), told(jax.jit(run))
    assert given == expected
    assert len(given[2]) == 18
    assert len(sdy.jit(run).lower(1, 0, 5).program.inputs) == 2


def test_ordered_effects_are_in_order_on_a_mesh_of_one_device(capsys: pytest.CaptureFixture[str]):
    mesh = jax.make_mesh((1,), ("x",), devices=jax.devices()[3:4], axis_types=(AxisType.Auto,))
    sharding = NamedSharding(mesh, P())

    def run(x: jax.Array) -> jax.Array:
        for number in range(4):
            jax.debug.print("{} {}", number, x.sum(), ordered=True)
        return x + 1

    ours = {"mesh": mesh, "out_shardings": sdy.Sharding.of("x", None)}
    ways: list[dict[str, Any]] = [{}, {"in_shardings": sharding}, ours]
    for options in ways:
        result = sdy.jit(run, **options)(X if options else jax.device_put(X, sharding))
        jax.effects_barrier()
        assert capsys.readouterr().out.splitlines() == [f"{number} {X.sum()}" for number in range(4)]
        assert result.devices() == {jax.devices()[3]}


def test_ordered_effects_are_refused_on_more_devices():
    def run(x: jax.Array) -> None:
        jax.debug.print("{}", x, ordered=True)

    ways: list[dict[str, Any]] = [{"in_shardings": SPLIT}, {"mesh": MESH}]
    for options in ways:
        with pytest.raises(ValueError, match="ordered effects are not supported for more than 1 device"):
            sdy.jit(run, **options)(X)


def test_a_partitioned_callback_is_called_by_each_device_with_its_part():
    def program(see: Callable[..., None]) -> Callable[..., Any]:
        def run(x: jax.Array) -> jax.Array:
            jax.debug.callback(see, x, x[0], partitioned=True)
            return x + 1

        return run

    result, calls = seen_by(program)
    np.testing.assert_array_equal(result, X + 1)
    assert sorted(part.shape for part, _ in calls) == [(2, 2)] * 8
    assert sum(float(part.sum()) for part, _ in calls) == X.sum()


def test_ordered_calls_are_in_order_on_more_devices(capsys: pytest.CaptureFixture[str]):
    def run(x: jax.Array) -> jax.Array:
        def round_(index: jax.Array, x: jax.Array) -> jax.Array:
            return x + io_callback(lambda i, x: (print(i, x.shape), x)[1], x, index, x, ordered=True)

        return lax.fori_loop(0, 4, round_, x)

    for jit in (jax.jit, sdy.jit):
        np.testing.assert_array_equal(jit(run, in_shardings=SPLIT)(X), X * 16)
        jax.effects_barrier()
        assert capsys.readouterr().out.splitlines() == [f"{index} (8, 4)" for index in range(4)]


@pytest.mark.parametrize("within", [{"mesh": MESH}, {}], ids=["sdy.compiler", "sdy.jit"])
def test_who_inspects_a_sharding_is_told_it_once(within: dict[str, Any]):
    told: list[Any] = []

    def run(x: jax.Array) -> jax.Array:
        jax.debug.inspect_array_sharding({"product": x @ x.T, "x": x}, callback=told.append)

        def round_(_: jax.Array, x: jax.Array) -> jax.Array:
            jax.debug.inspect_array_sharding(x, callback=told.append)
            return x + 1

        return lax.fori_loop(0, 3, round_, x)

    expected = jax.jit(run, in_shardings=SPLIT)(X)
    of_jax = told.copy()
    told.clear()
    if within:
        with sdy.compiler(**within):
            given = jax.jit(run, in_shardings=SPLIT)(X)
    else:
        program = sdy.jit(run, in_shardings=SPLIT)
        program(X)
        given = program(X)
    np.testing.assert_array_equal(given, expected)
    assert sorted(told, key=str) == sorted(of_jax, key=str) == [SPLIT, SPLIT, NamedSharding(MESH, P("x"))]


def loop_of(see: Callable[..., None]) -> Callable[[jax.Array], jax.Array]:
    """Return a loop that calls `see` in order: with rows and scalars, in a branch, in each iteration, with results."""

    def step(carry: jax.Array, number: jax.Array) -> tuple[jax.Array, None]:
        io_callback(see, None, number, carry[0], ordered=True)
        return carry + 1, None

    def program(x: jax.Array) -> jax.Array:
        io_callback(see, None, x, ordered=True)
        x = lax.scan(step, x, np.arange(2))[0]
        x = lax.cond(x[0, 0] > 0, lambda x: (io_callback(see, None, x[:, 1], ordered=True), x)[1], lambda x: x, x)
        x = x + io_callback(lambda x: (see(x), x)[1], x, x, ordered=True)
        io_callback(see, None, x.sum(), ordered=True)
        return x

    return program


@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(("y", "x")), P()], ids=str)
def test_an_ordered_callback_without_a_result_is_called_once(spec: P):
    calls: list[Any] = []
    program = loop_of(lambda *values: calls.append([np.asarray(value).tolist() for value in values]))
    found: list[Any] = []
    for jit in (jax.jit, sdy.jit):
        calls.clear()
        result = jit(program)(jax.device_put(X, NamedSharding(MESH, spec)))
        jax.effects_barrier()
        found.append((np.asarray(result).tolist(), calls.copy()))
    assert found[0] == found[1]
    assert len(found[0][1]) == 6


def sines(x: jax.Array, w: jax.Array) -> jax.Array:
    """Two large values of callbacks, which are on one device."""
    y = x @ w
    z = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(y.shape, y.dtype), y)
    return ((z @ w.T + jax.pure_callback(np.cos, jax.ShapeDtypeStruct(x.shape, x.dtype), x)) ** 2).sum()


def planned(lowered: Lowered) -> object:
    return sdy.auto(lowered.module, hardware="tpu-v5e")


@pytest.mark.parametrize("analyze", [sdy.lint, sdy.account, sdy.report, planned])
def test_programs_with_values_on_one_device_are_analyzed(analyze: Callable[[Any], object]):
    x, w = (
        jax.ShapeDtypeStruct((2048, 2048), "float32", sharding=NamedSharding(MESH, spec))
        for spec in (P("x"), P(None, "y"))
    )
    assert str(analyze(sdy.jit(sines).lower(x, w)))


def test_layouts_are_chosen_for_programs_with_callbacks():
    w = X.T @ X
    result = sdy.jit(sines, in_shardings=sdy.AUTO, mesh=MESH)(X, w)
    assert np.allclose(result, jax.jit(sines)(X, w))
