"""Each import and export pass alone, against the C++ one, on what the passes before it made of whole programs."""

# JAX's functions have types only in part.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from oracle import assert_same, oracle
from random_modules import random_module
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.spec import parse_pipeline
from sdy.text import context, format, parse

ROOT = Path(__file__).parent.parent

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
    "canonicalize{enable-patterns=sdy-collective}",
    "canonicalize",
]
ON_FUNCTIONS = {
    "sdy-constant-or-scalar-merger",
    "sdy-drop-sharding-rules",
    "sdy-remove-all-gather-reduce-scatter-for-cmv1",
    "sdy-sharding-constraint-to-reshard",
    "sdy-sink-data-flow-edges",
    "sdy-sink-func-data-flow-edges",
}
TESTED_ELSEWHERE = {
    "sdy-insert-explicit-reshards",
    "sdy-insert-func-call-reshards",
    "sdy-reshard-to-collectives",
    "sdy-user-priority-propagate",
    "sdy-verify-unreduced-axes",
}

MESH = AbstractMesh((4, 2), ("x", "y"))


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


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[jax.ShapeDtypeStruct, ...]]] = {
    "scan": (scan, (spec((8, 8), "x"), spec((3, 8, 8), None, None, "y"))),
    "branches": (branches, (spec((), dtype=jnp.bool_), spec((8, 8), "x"), spec((8, 8), "y"))),
    "manual": (manual, (spec((8, 8), "x", "y"), spec((8, 8)))),
    "gradients": (gradients, (spec((16, 8), "x"), spec((8, 8), None, "y"), spec((8, 8), "y"))),
}


def text_of(program: str) -> str:
    if program == "transformer":
        return (ROOT / "examples/transformer.mlir").read_text()
    if program in PROGRAMS:
        function, arguments = PROGRAMS[program]
        return jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()
    # Random modules are as propagation gets them; what importing does to them is taken back first.
    seed = int(program.removeprefix("random "))
    return oracle(random_module(seed, 20), "sdy-export-named-computations", "func.func(sdy-sink-data-flow-edges)")


def run(text: str, passes: str) -> str:
    module = parse(text)
    for step in parse_pipeline(passes):
        step.apply(context(), module)
    return format(module)


@pytest.mark.parametrize("middle", [INLINED, NOT_INLINED], ids=["inlined", "not inlined"])
@pytest.mark.parametrize("program", ["transformer", *PROGRAMS, *(f"random {seed}" for seed in range(8))])
def test_each_pass_alone_does_what_the_oracle_does(program: str, middle: list[str]) -> None:
    before = text_of(program)
    for step in (*BEFORE_PROPAGATION, *middle, *AFTER_PROPAGATION):
        after = oracle(before, step)
        if step not in TESTED_ELSEWHERE and (ours := run(before, step)) != after:
            assert_same(ours, after)
        before = after


def lit_tests() -> list[tuple[Path, str]]:
    """The inputs of the lit tests of one pass, with that pass, its options included."""
    found: list[tuple[Path, str]] = []
    for path in sorted(ROOT.glob("lit_tests/[ie][mx]porting/*.mlir")):
        for name, options in re.findall(r"// RUN: sdy-opt %s -(sdy-[\w-]+)(?:='([^']*)')? \|", path.read_text()):
            step = f"{name}{{{options}}}" if options else name
            if name not in TESTED_ELSEWHERE:
                found.append((path, f"func.func({step})" if name in ON_FUNCTIONS else step))
    return found


@pytest.mark.parametrize(("path", "step"), lit_tests())
def test_the_inputs_of_the_lit_tests(path: Path, step: str) -> None:
    assert_same(run(path.read_text(), step), oracle(path.read_text(), step))


def test_a_second_call_of_a_function_is_told() -> None:
    text = """
        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          return %arg0 : tensor<8xf32>
        }
    """
    with capture() as diagnostics:
        ours = run(text, "sdy-import-func-calls")
    assert_same(ours, oracle(text, "sdy-import-func-calls"))
    assert [diagnostic.message for diagnostic in diagnostics] == [
        "function @f has multiple call ops, we need to clone the function body for each call"
    ]


GROUPS_OF_DIFFERENT_SHAPES = """
    func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>) {
      sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
      sdy.sharding_group %arg1 group_id=1 : tensor<4xf32>
      return
    }
"""
GROUP_ACROSS_MANUAL_COMPUTATION = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
      %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={}
          (%arg1: tensor<8xf32>) {
        sdy.sharding_group %arg1 group_id=1 : tensor<8xf32>
        sdy.return %arg1 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
MANUAL_AXES_OF_NO_MESH = """
    func.func @main() {
      sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
        %0 = stablehlo.constant dense<1.0> : tensor<f32>
        sdy.return
      } : () -> ()
      return
    }
"""
CALLS_ITSELF = """
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
"""
NO_MAIN = """
    func.func @f() { return }
    func.func @g() { return }
"""


@pytest.mark.parametrize(
    ("text", "step", "line", "message"),
    [
        (GROUPS_OF_DIFFERENT_SHAPES, "sdy-sharding-group-import", 4, "must have the same shape for groupId: 1"),
        (GROUP_ACROSS_MANUAL_COMPUTATION, "sdy-sharding-group-import", 7, "cannot cross ManualComputationOp"),
        (MANUAL_AXES_OF_NO_MESH, "sdy-manual-axes-cleanup", 3, "manual_axes when there are no in/out shardings"),
        (CALLS_ITSELF, "sdy-flatten-call-graph", 6, "'@f' calls itself"),
        (NO_MAIN, "sdy-propagate-to-func-results", None, "expected a function named @main, or a single function"),
        (NO_MAIN, "sdy-save-module{dump-directory=/nowhere/at/all}", None, "cannot save the module"),
    ],
)
def test_bad_input_is_an_error_with_its_place(text: str, step: str, line: int | None, message: str) -> None:
    with pytest.raises(DiagnosticError, match=re.escape(message)) as raised:
        run(text, step)
    if line is not None:
        assert raised.value.where is not None
        assert raised.value.where.line == line


def test_a_module_is_saved(tmp_path: Path) -> None:
    text = "module {\n  func.func @main() {\n    return\n  }\n}\n"
    assert run(text, f"sdy-save-module{{dump-directory={tmp_path} file-name=state dump-index=3}}") == text
    assert (tmp_path / "03.state.mlir").read_text() == text
