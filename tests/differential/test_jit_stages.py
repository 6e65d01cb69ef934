"""The stages of `sdy.jit`, tracing, lowering and compiling, compared with those of `jax.jit`."""

import logging
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.type_helpers import Function

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.ones((8, 8), np.float32)
OPTIONS: dict[str, Any] = {"static_argnums": 3, "donate_argnums": 0}


def layer(x: Any, params: Any, unused: Any, scale: float) -> Any:
    return {"out": jnp.tanh(x @ params["w"]) * scale, "mean": (x.mean(), None)}


DYNAMIC: tuple[Any, ...] = (X, {"w": W}, 3)
ARGUMENTS: tuple[Any, ...] = (*DYNAMIC, 2.0)
SPLIT: dict[str, Any] = {"in_shardings": (NamedSharding(MESH, P("data", "model")), None, None), **OPTIONS}
OURS: Any = sdy.jit(layer, **SPLIT)
ALONE: Any = sdy.jit(layer, **OPTIONS)
OF_JAX: Any = jax.jit(layer, **OPTIONS)


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_each_stage_answers_what_that_of_jax_answers():
    assert public(OF_JAX) <= public(OURS)
    assert public(OF_JAX.trace(*ARGUMENTS)) <= public(OURS.trace(*ARGUMENTS))
    assert public(OF_JAX.lower(*ARGUMENTS)) <= public(OURS.lower(*ARGUMENTS))
    assert isinstance(OURS.lower(*ARGUMENTS).compile(), jax.stages.Compiled)


@pytest.mark.parametrize("options", [OPTIONS, SPLIT], ids=["alone", "on a mesh"])
@pytest.mark.parametrize("stage", ["lower", "trace"])
def test_trees_and_types_are_those_of_jax(stage: str, options: dict[str, Any]):
    given, expected = (getattr(jit(layer, **options), stage)(*ARGUMENTS) for jit in (sdy.jit, jax.jit))
    names = ["args_info", "donate_argnums", "in_avals", "in_tree", "out_tree"]
    for name in [*names, *(["out_avals", "fun_name"] if stage == "trace" else [])]:
        assert getattr(given, name) == getattr(expected, name), name
    results, wanted = (jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), each.out_info) for each in (given, expected))
    assert results == wanted


def test_shapes_are_told_without_compiling():
    arguments = (jax.ShapeDtypeStruct((16, 8), np.float32), *ARGUMENTS[1:])
    assert OURS.eval_shape(*arguments) == ALONE.eval_shape(*arguments) == OF_JAX.eval_shape(*arguments)


def test_traced_function_can_be_called_and_lowered():
    traced = OURS.trace(*ARGUMENTS)
    assert str(traced.jaxpr) == str(OF_JAX.trace(*ARGUMENTS).jaxpr)
    np.testing.assert_allclose(traced(*DYNAMIC)["out"], layer(*ARGUMENTS)["out"], rtol=1e-5)
    assert traced.lower().as_text() == OURS.lower(*ARGUMENTS).as_text()


def test_a_lowered_function_is_told_as_jax_lowers_it():
    lowered, of_jax = OURS.lower(*ARGUMENTS), jax.jit(layer, **SPLIT).lower(*ARGUMENTS)
    for dialect in (None, "stablehlo", "hlo"):
        assert lowered.as_text(dialect) == of_jax.as_text(dialect)
    assert "test_jit_stages.py" in lowered.as_text(debug_info=True)
    assert str(lowered.compiler_ir()) == lowered.as_text()
    assert lowered.compiler_ir("hlo").as_hlo_text() == lowered.as_text("hlo")
    with pytest.raises(ValueError, match="unknown dialect: llvm"):
        lowered.as_text("llvm")


def test_a_lowered_function_tells_what_one_device_runs():
    text = OURS.lower(*ARGUMENTS).device_text()
    assert "stablehlo.all_reduce" in text
    assert "tensor<2x4xf32>" in text
    assert "loc(" not in text
    assert "loc(" in OURS.lower(*ARGUMENTS).device_text(debug_info=True)


def test_cost_analysis_is_per_device():
    """Each of the eight devices multiplies an 8 x 8 shard by an 8 x 8 shard."""
    product = [jax.jit(jnp.matmul), sdy.jit(jnp.matmul), sdy.jit(jnp.matmul, mesh=MESH, in_shardings=P("data", None))]
    of_jax, alone, split = (run.lower(X, W).cost_analysis() for run in product)
    assert of_jax["flops"] == alone["flops"] == 2 * 8 * 8 * 8
    assert alone == of_jax
    assert split["flops"] < of_jax["flops"] / 2


def test_options_are_given_to_xla():
    for run in (OF_JAX, OURS):
        compiled = run.lower(*ARGUMENTS).compile(compiler_options={"xla_embed_ir_in_executable": True})
        np.testing.assert_allclose(compiled(*DYNAMIC)["out"], layer(*ARGUMENTS)["out"], rtol=1e-5)
        with pytest.raises(Exception, match="xla_no_such_option"):
            run.lower(*ARGUMENTS).compile(compiler_options={"xla_no_such_option": 1})


@pytest.mark.parametrize("jit", [sdy.jit, jax.jit])
def test_clear_cache_recompiles(jit: Callable[[Function[Any]], Any]):
    scale = 2
    run = jit(lambda x: x * scale)
    assert run(1) == 2
    scale = 3
    assert run(1) == 2
    run.clear_cache()
    assert run(1) == 3


def test_our_share_of_the_time_is_logged_as_that_of_jax(caplog: pytest.LogCaptureFixture):
    @wraps(layer)
    def again(x: Any, params: Any, unused: Any, scale: float) -> Any:
        return layer(x, params, unused, scale)

    program = sdy.jit(again, **SPLIT)
    with jax.log_compiles():
        program(*ARGUMENTS)
    told = [re.fullmatch(r"Finished (.+) of jit\(layer\) in \d+\.\d{9} sec", text) for text in caplog.messages]
    assert [line[1] for line in told if line] == ["parsing", "propagation", "partitioning", "XLA compilation"]
    caplog.clear()
    program(*ARGUMENTS)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_repr_of_each_stage():
    assert repr(OURS) == f"<sdy.jit of {layer!r}>"
    assert repr(OURS.trace(*ARGUMENTS)) == "<sdy.jit(layer), traced>"
    lowered = OURS.lower(*ARGUMENTS)
    signature = "for the mesh data=4, model=2: arrays in: 2, out: 2>"
    assert repr(lowered) == f"<sdy.jit(layer), lowered {signature}"
    assert repr(lowered.compile()) == f"<sdy.jit(layer), compiled {signature}"
    assert repr(lowered.program) == f"<a program {signature}"
    assert repr(sdy.compile(lowered.module)) == f"<a compiled program {signature}"
    assert len(str(jax.make_jaxpr(lowered.program)(X, W))) < 1000


@pytest.mark.parametrize("jit", [sdy.jit, jax.jit])
def test_escaped_tracer_is_refused(jit: Callable[[Function[Any]], Any]):
    """An escaped tracer must not be replaced by another value."""
    escaped: list[Any] = []
    jit(lambda x: escaped.append(x) or x)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
        jit(lambda x: escaped[0])(2.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
        jit(lambda x: x + escaped[0])(2.0)


def test_function_without_weak_references_is_refused():
    """jax.jit crashes some processes here."""

    class Increment:
        __slots__ = ()

        def __call__(self, x: Any) -> Any:
            return x + 1

    with pytest.raises(TypeError, match="cannot create weak reference"):
        sdy.jit(Increment())(1)
