"""Each import and export pass compared with the C++ pass on the same input, and the pipelines with the C++ pipelines.

They run on whole programs and on random modules; to run more:
`pytest --random-modules 2000 tests/differential/test_each_pass.py`.
"""

# JAX is only partly typed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false

from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from cxx_versions import lacks, with_known_reductions
from oracle import OracleError, assert_same, oracle, oracle_after_each
from random_modules import random_module
from samples import covering, is_thorough
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline
from sdy.text import format, parse
from sdy.type_helpers import Function

ROOT = Path(__file__).parents[2]
NUM_OPERATIONS = 16

RESHARDS = "func.func(sdy-insert-explicit-reshards{enable-full-version=true})"
BEFORE_PROPAGATION = [
    "symbol-dce",
    "sdy-lift-inlined-meshes",
    "sdy-remove-size-one-axes",
    "sdy-propagate-sharding-from-func-to-call",
    "sdy-constant-or-scalar-splitter",
    "symbol-dce",
    "sdy-manual-axes-cleanup",
    "sdy-add-data-flow-edges",
]
INLINED = [
    "sdy-flatten-call-graph",
    "symbol-dce",
    "sdy-import-func-calls",
    "symbol-dce",
    "sdy-apply-sharding-constraints",
    "sdy-sharding-group-import",
    "sdy-pre-order-funcs",
    "sdy-user-priority-propagate",
    "sdy-export-named-computations",
    "sdy-propagate-to-func-results",
    "sdy-unflatten-call-graph",
    "symbol-dce",
]
NOT_INLINED = [
    "sdy-apply-sharding-constraints",
    "sdy-sharding-group-import",
    "sdy-add-func-data-flow-edges",
    "sdy-pre-order-funcs",
    "sdy-user-priority-propagate",
    "sdy-propagate-to-func-results",
    "func.func(sdy-sink-func-data-flow-edges)",
    "sdy-unflatten-call-graph{dedup-functions-fully=true}",
    "symbol-dce",
]
AFTER_PROPAGATION = [
    "sdy-insert-func-call-reshards",
    "func.func(sdy-constant-or-scalar-merger)",
    "func.func(sdy-sink-data-flow-edges)",
    "sdy-remove-sharding-groups",
    "func.func(sdy-sharding-constraint-to-reshard)",
    "sdy-update-non-divisible-input-output-shardings",
    "sdy-remove-sub-axes-in-input-output-shardings",
    "sdy-close-shardings",
    RESHARDS,
    "canonicalize{enable-patterns=sdy-reshard}",
    "func.func(sdy-reshard-to-collectives)",
    "canonicalize{enable-patterns=sdy-collective}",
    "func.func(sdy-remove-all-gather-reduce-scatter-for-cmv1)",
    "func.func(sdy-drop-sharding-rules)",
    "canonicalize",
    "sdy-inline-meshes",
]
SEQUENCES = {
    "inlined": [*BEFORE_PROPAGATION, *INLINED, *AFTER_PROPAGATION],
    "not inlined": [*BEFORE_PROPAGATION, *NOT_INLINED, *AFTER_PROPAGATION],
}
_EXPORT_OPTIONS = "inline-meshes=false" if lacks("meshes inlined") else ""
PIPELINES = {
    "sdy-import-pipeline": "",
    "sdy-import-pipeline{dedup-functions-fully=true}": "",
    "sdy-propagation-pipeline": "",
    "sdy-propagation-pipeline{dedup-functions-fully=true}": "",
    "sdy-export-pipeline": _EXPORT_OPTIONS,
    "sdy-export-pipeline{enable-insert-explicit-collectives=true}": _EXPORT_OPTIONS,
}
"""The pipelines of the C++ in jaxlib, and the options that make ours equivalent."""

MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def spec(shape: tuple[int, ...], *axes: str | None, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*axes)))


def constrain(value: jax.Array, *axes: str | None) -> jax.Array:
    return jax.lax.with_sharding_constraint(value, NamedSharding(MESH, P(*axes)))


@jax.jit
def called(x: jax.Array) -> jax.Array:
    return jnp.sin(x) * 2 + jnp.arange(8.0)


def scan(x: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    def body(carry: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = constrain(jnp.tanh(carry @ weight), "x", None)
        return called(carry), carry.sum()

    last, sums = jax.lax.scan(body, x, weights)
    return called(last), sums


def branches(choice: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    pair = jax.lax.cond(choice, lambda a, b: (called(a) + b, a), lambda a, b: (a - b, called(b)), x, y)
    first, second = jax.lax.while_loop(lambda c: c[1].sum() < 3.0, lambda c: (c[0] * 2, called(c[1])), pair)
    return constrain(first, "x", "y"), second


def manual(x: jax.Array, y: jax.Array) -> jax.Array:
    multiply = jax.shard_map(
        lambda a, b: jax.lax.psum(a @ b, "y"), mesh=MESH, in_specs=(P("x", "y"), P("y")), out_specs=P("x")
    )
    partly = jax.shard_map(
        lambda a: called(a) * jnp.ones(8), mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    product = multiply(x, y)
    return partly(product) + called(product)


def gradients(x: jax.Array, first: jax.Array, second: jax.Array) -> Any:
    @jax.checkpoint
    def layer(hidden: jax.Array, weight: jax.Array) -> jax.Array:
        return jax.nn.gelu(hidden @ weight)

    def loss(first: jax.Array, second: jax.Array) -> jax.Array:
        return jnp.mean(layer(layer(x, first), second) ** 2)

    return jax.grad(loss, argnums=(0, 1))(first, second)


PROGRAMS: dict[str, tuple[Function[Any], tuple[jax.ShapeDtypeStruct, ...]]] = {
    "scan": (scan, (spec((8, 8), "x"), spec((3, 8, 8), None, None, "y"))),
    "branches": (branches, (spec((), dtype=jnp.bool_), spec((8, 8), "x"), spec((8, 8), "y"))),
    "manual": (manual, (spec((8, 8), "x", "y"), spec((8, 8)))),
    "gradients": (gradients, (spec((16, 8), "x"), spec((8, 8), None, "y"), spec((8, 8), "y"))),
}


def text_of(program: str) -> str:
    if program == "transformer":
        return (ROOT / "examples/transformer.mlir").read_text()
    function, arguments = PROGRAMS[program]
    return jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()


def random_text(seed: int) -> str:
    """Return a random module as a user would write it, without the import pipeline's changes."""
    module = random_module(seed, NUM_OPERATIONS, priorities=seed % 3 == 0)
    return oracle(module, "sdy-export-named-computations", "func.func(sdy-sink-data-flow-edges)")


def run(text: str, passes: str) -> str:
    """Return `text` after `passes`, parsed by jaxlib's C++."""
    module = parse(text)
    run_passes(module, parse_pipeline(passes))
    return with_known_reductions(format(module))


def with_options(pipeline: str, options: str) -> str:
    return f"{pipeline.removesuffix('}')} {options}}}" if "{" in pipeline else f"{pipeline}{{{options}}}"


def compare(before: str, step: str, after: str) -> None:
    ours = run(before, step)
    if ours != after and not lacks("main's results") and step.startswith(_WRITING_RESULTS):
        ours = oracle(ours, "sdy-propagate-to-func-results")
    plans = "sdy-reshard-to-collectives" in step or "explicit-collectives" in step
    if ours != after and (lacks("other plans") or not plans):
        assert_same(ours, after)


_WRITING_RESULTS = ("sdy-propagate-to-func-results", "sdy-propagation-pipeline")


def texts_of_oracle(text: str, steps: list[str]) -> list[str]:
    """Return `text` after each of `steps`, by the C++.

    The C++ crashes in propagation for one in some hundred random modules with priorities; those are skipped. If axis
    sizes do not divide each other, it creates collectives that its own verifier refuses; the list ends there.
    """
    try:
        return oracle_after_each(text, *steps)
    except OracleError as problem:
        pytest.skip(f"the C++ {problem}")


def compare_each(text: str, steps: list[str]) -> None:
    """Check that each of `steps`, on the C++ output of the steps before it, gives what the C++ gives."""
    texts = texts_of_oracle(text, steps)
    assert len(texts) > steps.index(RESHARDS)
    for step, (before, after) in zip(steps, pairwise(texts), strict=False):
        compare(before, step, after)


def compare_pipeline(text: str, pipeline: str) -> None:
    """Check that the pipeline gives what the C++ gives; for an export pipeline, `text` is propagated first."""
    if "export" in pipeline:
        text = texts_of_oracle(text, [*BEFORE_PROPAGATION, *INLINED])[-1]
    texts = texts_of_oracle(text, [pipeline])
    if len(texts) == 1 and "explicit-collectives" in pipeline:
        pytest.skip("the C++ makes collectives that its own verifier refuses")
    options = PIPELINES[pipeline]
    compare(text, with_options(pipeline, options) if options else pipeline, texts[1])


NAMES = [*PROGRAMS, *["transformer"] * is_thorough()]
"""The programs; the whole pipeline is compared on the transformer by `test_transformer.py`."""


@covering
@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("program", NAMES)
def test_each_pass_on_programs(program: str, sequence: str) -> None:
    compare_each(text_of(program), SEQUENCES[sequence])


@covering
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("program", NAMES)
def test_pipelines_on_programs(program: str, pipeline: str) -> None:
    compare_pipeline(text_of(program), pipeline)


def test_each_pass_on_a_random_module(random_seed: int) -> None:
    compare_each(random_text(random_seed), list(SEQUENCES.values())[random_seed % len(SEQUENCES)])


def test_pipelines_on_a_random_module(random_seed: int) -> None:
    compare_pipeline(random_text(random_seed), list(PIPELINES)[random_seed % len(PIPELINES)])
