"""`sdy.jit` compared with `jax.jit`: arguments and results, recompilation, and errors."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.jax.hlo_collectives import collectives
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((4, 2), ("data", "model"))
X = np.arange(64, dtype=np.float32).reshape(8, 8) / 100
PARAMS = {"w": np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4), "b": np.ones(4, np.float32)}


def on(*axes: Any) -> NamedSharding:
    return NamedSharding(MESH, P(*axes))


def layer(params: Any, x: Any, scale: float = 1.0) -> Any:
    return {"out": jnp.tanh(x @ params["w"] + params["b"]) * scale, "mean": (x.mean(), None)}


def assert_like_jax(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Check that `function` returns the same under `sdy.jit` and `jax.jit`, trees and types included."""
    given, expected = function(*args, **kwargs), jax.jit(function.__wrapped__)(*args, **kwargs)
    assert jax.tree.structure(given) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(given), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=1e-6)
    return given


def test_trees_go_in_and_out_laid_out_as_given():
    run = sdy.jit(layer, mesh=MESH, in_shardings=({"w": P(None, "model"), "b": None}, P("data")))
    out = assert_like_jax(run, PARAMS, X)
    assert out["out"].sharding.spec == P("data", "model")


def test_the_shardings_of_the_arrays_count_where_none_are_given():
    run = sdy.jit(layer)
    params = jax.device_put(PARAMS, {"w": on(None, "model"), "b": on("model")})
    assert assert_like_jax(run, params, jax.device_put(X, on("data")))["out"].sharding.spec == P("data", "model")
    assert assert_like_jax(run, params, jax.device_put(X, on()))["out"].sharding.spec == P(None, "model")


def test_without_any_sharding_one_device_runs_it():
    assert len(sdy.jit(layer)(PARAMS, X)["out"].devices()) == 1
    assert len(sdy.jit(layer, mesh=MESH)(PARAMS, X)["out"].devices()) == 8
    device = jax.devices()[3]
    assert sdy.jit(layer)(PARAMS, jax.device_put(X, device))["out"].devices() == {device}


ALONE = jax.make_mesh((1,), ("data",), devices=jax.devices()[3:4], axis_types=(AxisType.Auto,))
ON_ALONE = NamedSharding(ALONE, P())
ELSEWHERE = jax.device_put(X, jax.devices()[3])
PLACES: dict[str, tuple[Function[Any], dict[str, Any], tuple[Any, ...]]] = {
    "numpy": (jnp.sin, {}, (X,)),
    "not committed": (jnp.sin, {}, (jnp.ones(8),)),
    "no arguments": (lambda: jax.random.key(0), {}, ()),
    "no elements": (jnp.sin, {}, (X[:0],)),
    "on a device": (jnp.sin, {}, (ELSEWHERE,)),
    "on the default device": (jnp.sin, {}, (jax.device_put(X, jax.devices()[0]),)),
    "of one on a device": (jnp.add, {}, (ELSEWHERE, jnp.ones(8))),
    "unused": (lambda x, _: x + 1, {}, (X, ELSEWHERE)),
    "constant": (lambda x, y=ELSEWHERE: x + y, {}, (X,)),
    "on a mesh": (jnp.sin, {}, (jax.device_put(X, ON_ALONE),)),
    "of one on a mesh": (jnp.add, {}, (jax.device_put(X, ON_ALONE), jnp.ones(8))),
    "argument given": (jnp.sin, {"in_shardings": ON_ALONE}, (X,)),
    "result given": (jnp.sin, {"out_shardings": ON_ALONE}, (X,)),
    "constraint": (lambda x: jax.lax.with_sharding_constraint(x, ON_ALONE) + 1, {}, (X,)),
    "devices": (jnp.sin, {"in_shardings": on("data")}, (X,)),
}


@pytest.mark.parametrize(("function", "options", "args"), PLACES.values(), ids=PLACES)
def test_results_are_committed_where_those_of_jax_are(
    function: Function[Any], options: dict[str, Any], args: tuple[Any, ...]
):
    given, expected = (jit(function, **options)(*args) for jit in (sdy.jit, jax.jit))
    assert given.committed == expected.committed
    assert given.sharding == expected.sharding


@pytest.mark.parametrize("mesh", [MESH, ALONE, EXPLICIT], ids=["eight", "one", "explicit"])
def test_unsharded_result_is_on_the_context_mesh(mesh: jax.sharding.Mesh):
    run = sdy.jit(lambda x: jnp.tanh(x) + 1)
    assert not run(X).committed
    with jax.set_mesh(mesh):
        given, expected = run(X), jax.jit(run.__wrapped__)(X)
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    assert given.sharding == expected.sharding
    assert given.committed


def test_uncommitted_result_combines_with_arrays_on_any_devices():
    made = sdy.jit(lambda: {"w": jnp.ones((8, 8))})()
    for place in (jax.devices()[3], on("data"), ON_ALONE):
        x = jax.device_put(X, place)
        for step in (jax.jit, sdy.jit):
            assert step(lambda made, x: made["w"] @ x)(made, x).devices() == x.devices()


def test_our_shardings_may_leave_dimensions_open_and_cut_axes():
    mesh = sdy.Mesh.of({"x": 8})
    cut = sdy.Sharding.of(sdy.AxisRef("x", 2, 4), None, mesh=mesh)
    run = sdy.jit(lambda x, y: x + y, in_shardings=(sdy.Sharding.of(..., ..., mesh=mesh), cut), out_shardings=cut)
    assert assert_like_jax(run, X, X).addressable_shards[0].data.shape == (2, 8)


def test_types_say_shardings_on_a_mesh_with_explicit_axes():
    x = jax.device_put(X, NamedSharding(EXPLICIT, P("data")))
    run = sdy.jit(lambda x: jnp.tanh(x) @ jnp.ones((8, 3)))
    assert jax.typeof(assert_like_jax(run, x)) == jax.typeof(jax.jit(run.__wrapped__)(x))
    with jax.set_mesh(EXPLICIT):
        assert_like_jax(run, x)
    with jax.set_mesh(MESH):
        assert sdy.jit(layer, in_shardings=(None, P("data")))(PARAMS, X)["out"].sharding.spec == P("data")


def test_results_are_laid_out_as_given():
    run = sdy.jit(layer, mesh=MESH, out_shardings={"out": P("model"), "mean": None})
    assert assert_like_jax(run, PARAMS, X)["out"].sharding.is_equivalent_to(on("model"), 2)


def test_layouts_in_memory_are_those_given():
    by_column = Format(Layout((1, 0)), on("data"))
    options: dict[str, Any] = {"in_shardings": (by_column, None), "out_shardings": {"sum": by_column, "x": None}}
    given, expected = (
        jit(lambda x, y: {"sum": x + y, "x": x}, **options)(jax.device_put(X, by_column), X)
        for jit in (sdy.jit, jax.jit)
    )
    assert given["sum"].format == expected["sum"].format
    assert given["sum"].format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(given["sum"], X + X)
    np.testing.assert_array_equal(given["x"], X)
    with pytest.raises(ValueError, match=r"^x: \w*Sharding"):
        sdy.jit(jnp.sin, in_shardings=by_column)(X[:6])


def test_it_decorates_functions_and_methods():
    class Model(NamedTuple):
        scale: float

        @sdy.jit(mesh=MESH, static_argnums=0)
        def doubled(self, x: jax.Array) -> jax.Array:
            """Twice."""
            return x * 2 * self.scale

    @sdy.jit
    def halved(x: jax.Array) -> jax.Array:
        return x / 2

    np.testing.assert_array_equal(Model(3.0).doubled(X), X * 6)
    np.testing.assert_array_equal(halved(X), X / 2)
    assert Model.doubled.__doc__ == "Twice."
    assert halved.__name__ == "halved"


@pytest.mark.parametrize("options", [{}, {"in_shardings": P()}], ids=["alone", "on a mesh"])
@pytest.mark.parametrize("jit", [sdy.jit, jax.jit])
def test_error_of_a_function_without_a_signature_is_raised(jit: Any, options: dict[str, Any]):
    with jax.set_mesh(MESH), pytest.raises(ValueError, match="truth value of an empty array"):
        jit(bool, **options)(np.ones((0, 8), np.float32))


def test_it_is_traced_once_for_each_kind_of_argument():
    traces: list[Any] = []

    @sdy.jit(static_argnames="flag", mesh=MESH)
    def run(x: Any, flag: Any = None) -> Any:
        traces.append(flag)
        return jax.tree.map(lambda leaf: leaf + 1, x)

    for _ in range(3):
        run(X)
    assert len(traces) == 1
    for other in (X[:4], X.astype(np.int32), 1.0, np.float32(1), {"x": X}, (X,)):
        run(other)
        run(other)
    assert len(traces) == 7
    run(X, flag="a")
    run(X, flag="b")
    run(X, flag="a")
    assert traces[7:] == ["a", "b"]


def test_donated_arrays_are_gone():
    run = sdy.jit(lambda x, y: (x + y, y.sum()), donate_argnums=0)
    x, y = jax.device_put((X, X), on("data"))
    run(x, y)
    assert x.is_deleted()
    assert not y.is_deleted()
    named = sdy.jit(lambda x, y: x + y, donate_argnames="y", in_shardings=on("data"))
    named(X, y)
    assert y.is_deleted()


@pytest.mark.parametrize("keep", [False, True])
def test_unused_arguments_are_left_out_unless_kept(keep: bool):
    shardings = [on(), None, sdy.Sharding.of("data", None)]
    run = sdy.jit(lambda x, y, z: z * 2, mesh=MESH, keep_unused=keep, in_shardings=shardings)
    assert len(run.lower(X, X, X).program.inputs) == (3 if keep else 1)
    assert assert_like_jax(run, X, X, X).sharding.spec == P("data")


def test_random_keys_are_arrays_too():
    run = sdy.jit(
        lambda key, x: (jax.random.split(key), jax.random.bits(key, (8,)) + x), in_shardings=(None, on("data"))
    )
    keys, bits = run(jax.random.key(0), jnp.zeros(8, jnp.uint32))
    np.testing.assert_array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(0))))
    np.testing.assert_array_equal(bits, jax.random.bits(jax.random.key(0), (8,)))


@pytest.mark.parametrize("options", [{}, {"mesh": MESH, "in_shardings": P("data")}], ids=["alone", "on a mesh"])
def test_integer_arguments_have_float0_gradients(options: dict[str, Any]):
    def derivative(x: Any) -> Any:
        return jax.value_and_grad(lambda x: (x * 2.0).sum(), allow_int=True)(x)

    given, expected = (run(np.arange(8)) for run in (sdy.jit(derivative, **options), jax.jit(derivative)))
    assert given[0] == expected[0]
    assert given[1].dtype == expected[1].dtype == jax.dtypes.float0
    assert given[1].shape == (8,)
    assert sdy.jit(lambda x: x, **options)(given[1]).dtype == jax.dtypes.float0


@pytest.mark.parametrize("options", [{}, {"mesh": MESH, "in_shardings": P("data")}], ids=["alone", "on a mesh"])
@pytest.mark.parametrize(("flag", "number"), [("jax_debug_nans", -1), ("jax_debug_infs", 0)])
def test_the_operation_that_makes_a_nan_is_named(flag: str, number: int, options: dict[str, Any]):
    def program(x: Any) -> Any:
        return {"fine": x + 1, "wrong": jnp.log(x)}

    jax.config.update(flag, True)
    try:
        for jit in (partial(sdy.jit, **options), jax.jit):
            with pytest.raises(FloatingPointError, match=r"invalid value \((nan|inf)\) encountered in log"):
                jit(program)(np.full(8, number, np.float32))
    finally:
        jax.config.update(flag, False)


def test_functions_that_it_calls_keep_what_axes_do_not_divide_in_parts():
    doubled = jax.jit(lambda x: x * 2)

    def joined(x: Any) -> Any:
        return jnp.concatenate([x[:1], doubled(x[1:])])

    run = sdy.jit(joined, in_shardings=on("data"))
    assert_like_jax(run, X)
    assert "all-gather" not in collectives(run.lower(X).compile().as_text())


def test_it_is_a_part_of_what_jax_traces():
    run = sdy.jit(lambda w, x: jnp.tanh(x @ w).sum(), mesh=MESH, in_shardings=(P(None, "model"), P("data")))
    w = PARAMS["w"]
    expected = jax.grad(run.__wrapped__)(w, X)
    np.testing.assert_allclose(jax.grad(run)(w, X), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(run))(w, X), expected, rtol=1e-5)
    np.testing.assert_allclose(sdy.jit(jax.grad(run), mesh=MESH)(w, X), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(sdy.jit(jnp.sum))(X), jax.vmap(jnp.sum)(X), rtol=1e-6)
    assert jax.eval_shape(run, w, X).shape == ()
    with jax.disable_jit():
        np.testing.assert_allclose(run(w, X), run.__wrapped__(w, X), rtol=1e-5)


def test_a_lowered_function_shows_its_program_and_compiles():
    run = sdy.jit(layer, mesh=MESH, in_shardings=(None, P("data", "model")), static_argnums=2)
    lowered = run.lower(PARAMS, jax.ShapeDtypeStruct((8, 8), "float32"), 2.0)
    assert '[{"data"}, {"model"}]' in sdy.format(lowered.module)
    assert "stablehlo.all_reduce" in lowered.device_text()
    assert "test_jit.py" not in lowered.device_text()
    assert "test_jit.py" in lowered.device_text(debug_info=True)
    compiled = lowered.compile()
    assert "jit(layer)/tanh" in compiled.as_text()
    assert "sharded_program.py" not in compiled.as_text()
    np.testing.assert_allclose(compiled(PARAMS, X)["out"], layer(PARAMS, X, 2.0)["out"], rtol=1e-6)
    with pytest.raises(TypeError, match=r"'x' compiled with float32\[8,8\] and called with float32\[4,8\]"):
        compiled(PARAMS, X[:4])
    with pytest.raises(TypeError, match="pytree"):
        compiled(list(PARAMS.values()), X)


TINY = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2], axis_types=(AxisType.Auto,))
WRONG = {
    "structure": ({"in_shardings": ({"v": on()}, None)}, ValueError, r"in_shardings\[0\]|pytree"),
    "not divisible": (
        {"in_shardings": (None, on(None, ("data", "model"))), "arg": X[:, :6]},
        ValueError,
        r"^x: \w*Sharding",
    ),
    "no sharding": (
        {"in_shardings": ({"w": "model", "b": None}, None)},
        TypeError,
        r"in_shardings\[0\]\['w'\] must be",
    ),
    "another mesh": ({"mesh": TINY, "in_shardings": ({"w": on(), "b": None}, None)}, ValueError, "is on the mesh"),
    "other axes": (
        {"mesh": TINY, "in_shardings": (None, sdy.Sharding.of(mesh=sdy.Mesh.of({"x": 2})))},
        ValueError,
        r"in_shardings\[1\] is on a mesh with the axes \{'x': 2\}, not \{'data': 2\}",
    ),
    "no mesh": ({"in_shardings": (None, sdy.Sharding.of("x"))}, ValueError, r"in_shardings\[1\] does not say its mesh"),
    "rank": (
        {"mesh": MESH, "in_shardings": ({"w": sdy.Sharding.of("data"), "b": None}, None)},
        ValueError,
        r"the sharding of params\['w'\]: sharding doesn't match tensor rank: 1 != 2",
    ),
    "rank of jax's": (
        {"in_shardings": (None, on("data", None, None))},
        ValueError,
        "Sharding .* is only valid for values of rank at least 3",
    ),
    "no prefix": ({"in_shardings": (on("data"),)}, ValueError, "must be a tree prefix"),
    "unknown axis": (
        {"mesh": MESH, "out_shardings": {"out": sdy.Sharding.of("z", None), "mean": None}},
        ValueError,
        r"the sharding of result\['out'\]: unknown axis name: \"z\"",
    ),
    "not a mesh": ({"mesh": {"x": 2}}, TypeError, "mesh must be .* or an sdy.Mesh, not dict"),
    "too few devices": ({"mesh": sdy.Mesh.of({"x": 16})}, ValueError, r"16 devices \(x=16\); jax has 8"),
    "devices of the arrays": ({"mesh": TINY, "arg": jax.device_put(X, on())}, ValueError, "incompatible devices"),
    "unknown option": ({"shardings": None}, TypeError, "shardings"),
}


@pytest.mark.parametrize(("options", "error", "message"), WRONG.values(), ids=WRONG)
def test_errors_name_the_wrong_argument(options: dict[str, Any], error: type[Exception], message: str):
    arg = options.get("arg", X)
    options = {name: value for name, value in options.items() if name != "arg"}
    with pytest.raises(error, match=message):
        sdy.jit(layer, **options)({"w": np.ones((arg.shape[1], 4), np.float32), "b": PARAMS["b"]}, arg)
