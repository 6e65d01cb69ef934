"""Train steps around annotated kernels, sharded over eight devices: their results and their collectives."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from annotated_kernels import (
    attention,
    attention_op,
    cross_entropy,
    cross_entropy_op,
    grouped_matmul,
    grouped_matmul_op,
    layer_norm,
    layer_norm_op,
)

D, M = "data", "model"
Tree = dict[str, Any]
Axes = tuple[str | None, ...]


def attention_block(kernel: Callable[..., Any], p: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    q, k, v = (jnp.einsum("bse,ehd->bhsd", x, p[name]) for name in "qkv")
    return ((jnp.einsum("bhsd,hde->bse", kernel(q, k, v), p["o"]) - y) ** 2).sum()


def experts(kernel: Callable[..., Any], p: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((kernel(jnp.tanh(x), p["w"]) - y) ** 2).sum()


def classifier(kernel: Callable[..., Any], p: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    return kernel(jnp.tanh(x @ p["w"]), p["u"], y)


def normalized(kernel: Callable[..., Any], p: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((kernel(x, p["scale"], p["bias"]) - y) ** 2).sum()


@dataclass(frozen=True)
class Step:
    """A model around a kernel: the shapes and axes of its parameters, inputs and targets.

    FileCheck finds `kernel` in the program of one device, and all-reduces over these replica groups as the only
    collectives.
    """

    loss: Callable[..., Any]
    plain: Callable[..., Any]
    annotated: Callable[..., Any]
    parameters: Mapping[str, tuple[tuple[int, ...], Axes]]
    x: tuple[tuple[int, ...], Axes]
    y: tuple[tuple[int, ...], Axes]
    kernel: str
    all_reduces: tuple[str, ...]


AMONG_DATA = "[0, 2, 4, 6], [1, 3, 5, 7]"
AMONG_MODEL = "[0, 1], [2, 3], [4, 5], [6, 7]"
AMONG_ALL = "[0, 1, 2, 3, 4, 5, 6, 7]"

STEPS = {
    # Megatron-LM's sharding: heads over "model", the batch over "data".
    "attention": Step(
        attention_block,
        attention,
        attention_op,
        dict.fromkeys("qkv", ((16, 4, 8), (None, M))) | {"o": ((4, 8, 16), (M,))},
        ((8, 6, 16), (D,)),
        ((8, 6, 16), (D,)),
        "CHECK: stablehlo.exponential {{.*}} : tensor<2x2x6x6xf32>",
        # All-reduces of the heads' outputs, of the loss, and of the gradients of the four weights.
        (AMONG_MODEL, *[AMONG_DATA] * 5),
    ),
    # Experts are sharded over "model", and the rows of each over "data".
    "grouped matmul": Step(
        experts,
        grouped_matmul,
        grouped_matmul_op,
        {"w": ((4, 8, 6), (M,))},
        ((4, 16, 8), (M, D)),
        ((4, 16, 6), (M, D)),
        "CHECK: stablehlo.dot_general {{.*}} (tensor<2x4x8xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>",
        # The loss sums over all experts; an expert's gradient is computed on the expert's devices.
        (AMONG_ALL, AMONG_DATA),
    ),
    # Rows are sharded over "data"; a device stores only the logits of its rows.
    "cross-entropy": Step(
        classifier,
        cross_entropy,
        cross_entropy_op,
        {"w": ((8, 8), ()), "u": ((8, 32), ())},
        ((16, 8), (D,)),
        ((16,), (D,)),
        "CHECK: stablehlo.exponential {{.*}} : tensor<4x32xf32>",
        # All-reduces of the kernel's sum, and of the gradients of the two weights.
        (AMONG_DATA,) * 3,
    ),
    # All dimensions but the normalized one are sharded.
    "layer norm": Step(
        normalized,
        layer_norm,
        layer_norm_op,
        {"scale": ((16,), ()), "bias": ((16,), ())},
        ((8, 6, 16), (D, M)),
        ((8, 6, 16), (D, M)),
        "CHECK: stablehlo.rsqrt {{.*}} : tensor<2x3x1xf32>",
        # All-reduces of the loss, and of the gradients of scale and bias.
        (AMONG_ALL,) * 3,
    ),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_train_steps(step: Step, tmp_path: Path):
    mesh = jax.make_mesh((4, 2), (D, M), axis_types=(AxisType.Auto,) * 2)
    random = np.random.default_rng(0)

    def sharding(axes: Axes) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    def array(shape: tuple[int, ...]) -> Any:
        return (0.3 * random.standard_normal(shape)).astype(np.float32)

    parameters = {name: array(shape) for name, (shape, _) in step.parameters.items()}
    x = array(step.x[0])
    y = array(step.y[0]) if len(step.y[0]) > 1 else random.integers(0, 32, step.y[0]).astype(np.int32)
    shardings = ({name: sharding(axes) for name, (_, axes) in step.parameters.items()},)
    shardings += (sharding(step.x[1]), sharding(step.y[1]))

    def train(kernel: Callable[..., Any]) -> Callable[..., Any]:
        def run(p: Tree, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Tree]:
            value, gradients = jax.value_and_grad(lambda p: step.loss(kernel, p, x, y))(p)
            return value, jax.tree.map(lambda old, gradient: old - 0.1 * gradient, p, gradients)

        return run

    expected = jax.jit(train(step.plain))(parameters, x, y)
    jitted = sdy.jit(train(step.annotated), in_shardings=shardings)
    for one, other in zip(jax.tree.leaves(jitted(parameters, x, y)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)

    module = jitted.lower(parameters, x, y).module
    sdy.partition(module)
    program = sdy.format(module)
    assert_checks(program, step.kernel, tmp_path)
    collectives = re.findall(r".*stablehlo\.(?:all_|collective_|reduce_scatter).*", program)
    expected_lines = [f'CHECK-NEXT: all_reduce"{{{{.*}}}}{groups}' for groups in step.all_reduces]
    checks = ["CHECK: collectives", *expected_lines, "CHECK-NOT: stablehlo"]
    assert_checks("\n".join(["collectives", *collectives]), "\n".join(checks), tmp_path)


def assert_checks(text: str, checks: str, folder: Path) -> None:
    """Check a text with FileCheck."""
    (folder / "checks").write_text(checks)
    (folder / "text").write_text(text)
    assert Matcher.from_opts(Options(str(folder / "checks"), str(folder / "text"))).run() == 0
