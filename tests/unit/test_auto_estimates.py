"""Estimated costs of layouts beside the costs of the partitioned programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product

import jax
import jax.numpy as jnp
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.rewriter import InsertPoint
from xdsl.utils.test_value import create_ssa_value

import sdy
from sdy.dialect.ops import MeshOp
from sdy.ir.editing import insert
from sdy.passes.auto import operation_cost
from sdy.passes.auto.auto import prepared
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.operation_cost import OperationCosts
from sdy.passes.auto.truth import LayoutOfModule, truth_of
from sdy.passes.spmd.costs.fusion import FusedValues
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.passes.spmd.costs.work import work_of
from sdy.sharding import DimSpec
from sdy.stablehlo import OptimizationBarrierOp

TPU, GPU = hardware_of("tpu-v5p"), hardware_of("h100-8")
Specs = Sequence[Sequence[DimSpec]]


def float_array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, "float32")


def costs(module: ModuleOp, *specs: Sequence[DimSpec], hardware: Hardware = TPU) -> tuple[StepCost, StepCost]:
    """Return the estimated and the true cost of a layout of the arguments over 4 x 2 devices."""
    insert(MeshOp("mesh", sdy.Mesh.of({"x": 4, "y": 2})), InsertPoint.at_start(module.body.block))
    program = fold(prepared(module))
    shardings = {index: sdy.Sharding.of(*spec) for index, spec in enumerate(specs)}
    layout = {node: shardings[indices[0]] for node, indices in program.arguments.items()}
    estimated = Estimator(program, "mesh", hardware).estimate(layout).cost
    return estimated, truth_of(module, LayoutOfModule(shardings), "mesh", hardware).cost


def stacked_products() -> ModuleOp:
    """Return a loop over layers whose activations are summed over devices while parameters are sliced."""

    def loss(up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return x + jnp.tanh(x @ w[0]) @ w[1], None

        return jax.lax.scan(layer, x, (up, down))[0]

    return sdy.from_jax(loss, float_array(8, 2048, 8192), float_array(8, 8192, 2048), float_array(64, 2048))


def gradient_of_scan() -> ModuleOp:
    """Return the gradient of a recurrence with a parameter that every iteration reads and adds a gradient to."""

    def loss(w: jax.Array, xs: jax.Array) -> jax.Array:
        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return h * jnp.exp(w)[None] + x[..., None], None

        return jax.lax.scan(step, jnp.zeros((64, 4096, 16)), xs)[0].sum()

    return sdy.from_jax(jax.grad(loss), float_array(4096, 16), float_array(32, 64, 4096))


def convolutions() -> ModuleOp:
    """Return the gradients of convolutions whose rows are sharded, so that they exchange halos."""

    def convolved(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(v: jax.Array, w: jax.Array, scale: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.square(convolved(jax.nn.relu(convolved(x, v) * scale), w)).sum()

    parameters = float_array(3, 3, 64, 64), float_array(3, 3, 64, 64), float_array(64)
    return sdy.from_jax(jax.grad(loss, (0, 1, 2)), *parameters, float_array(8, 64, 64, 64))


def scaled_layers() -> ModuleOp:
    """Return the gradients of layers that scale activations by a large parameter before a product."""

    def loss(scales: Sequence[jax.Array], weights: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        for scale, w in zip(scales, weights, strict=True):
            x = jnp.tanh((x * scale) @ w)
        return jnp.square(x).sum()

    scales, weights = [float_array(256, 2048)] * 4, [float_array(2048, 2048)] * 4
    return sdy.from_jax(jax.grad(loss, (0, 1)), scales, weights, float_array(64, 256, 2048))


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (scaled_layers, [[None, ("x", "y")]] * 4 + [[("x", "y"), None]] * 4 + [[("x", "y"), None, None]]),
        (stacked_products, [[None, None, ("x", "y")], [None, ("x", "y"), None], [None, None]]),
        (stacked_products, [[None, "x", "y"], [None, "y", "x"], ["x", None]]),
        (gradient_of_scan, [["y", "x"], [None, "x", "y"]]),
        (convolutions, [[None] * 4, [None] * 4, [None], ["y", "x", None, None]]),
    ],
)
def test_estimates_agree_with_partitioned_programs(program: Callable[[], ModuleOp], specs: Specs) -> None:
    """Less overlaps than the estimate says.

    The first iteration of a loop has none before it, and what runs beside a collective may end after it, as the slices
    of `stacked_products` do.
    """
    estimated, true = costs(program(), *specs)
    assert estimated.communication == pytest.approx(true.communication, rel=0.02)
    assert estimated.compute == pytest.approx(true.compute, rel=0.12)
    assert estimated.overlap == pytest.approx(true.overlap, rel=0.15, abs=0.13 * true.seconds)


def recurrence() -> ModuleOp:
    """Return the gradients of a recurrence, whose inputs are multiplied in each iteration, too."""

    def loss(w: jax.Array, v: jax.Array, xs: jax.Array) -> jax.Array:
        def step(h: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = jnp.tanh(h @ w + x @ v)
            return h, h

        return jax.lax.scan(step, jnp.zeros((512, 2048)), xs)[1].sum()

    return sdy.from_jax(jax.grad(loss, (0, 1)), *[float_array(2048, 2048)] * 2, float_array(32, 512, 2048))


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (stacked_products, [[None, ("x", "y"), None], [None, ("x", "y"), None], [("x", "y"), None]]),
        (gradient_of_scan, [["y", "x"], [None, "x", "y"]]),
        (recurrence, [["x", "y"], ["x", "y"], [None, "x", None]]),
    ],
)
def test_estimates_agree_where_iterations_do_not_overlap(program: Callable[[], ModuleOp], specs: Specs) -> None:
    estimated, true = costs(program(), *specs, hardware=GPU)
    print(
        round(estimated.seconds / true.seconds, 3),
        *[
            f"{k * 1e6:.0f}"
            for c in (estimated, true)
            for k in (c.compute, sum(c.communication.values()), c.overlap, c.seconds)
        ],
    )
    assert estimated.seconds == pytest.approx(true.seconds, rel=0.2)


def shardings(rank: int, axes: Sequence[str]) -> Iterator[sdy.Sharding]:
    """Yield all shardings over some of the axes, in each order of the axes of a dimension."""
    for order in permutations(axes):
        for places in product(range(rank + 1), repeat=len(axes)):
            axes_of = [
                tuple([axis for axis, place in zip(order, places, strict=True) if place == d]) for d in range(rank)
            ]
            yield sdy.Sharding.of(*axes_of)


def unplanned(*_: object) -> None:
    """Find no cost of a reshard, so that it is partitioned."""


@pytest.mark.parametrize(
    ("shape", "mesh"),
    [((16, 8, 24), {"x": 4, "y": 2}), ((8, 8), {"x": 2, "y": 2, "z": 2}), ((6, 8), {"x": 4, "y": 2})],
)
def test_planned_reshards_cost_as_much_as_partitioned_ones(
    shape: Sequence[int], mesh: Mapping[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The formula for the cost of a plan agrees with the collectives that are emitted for it."""
    devices = sdy.Mesh.of(mesh)
    module = ModuleOp([MeshOp("mesh", devices)])
    type_ = TensorType(f32, shape)
    barrier = OptimizationBarrierOp.build(operands=[[create_ssa_value(type_)]], result_types=[[type_]])
    work = work_of(barrier, FusedValues())
    planned, partitioned = (OperationCosts(module, "mesh", devices, hardware_of("h100-8")) for _ in range(2))
    pairs = [*product(dict.fromkeys(shardings(len(shape), [*mesh])), repeat=2)][::7]
    costs = [planned.of(barrier, 0, work, pair) for pair in pairs]
    monkeypatch.setattr(operation_cost, "planned_reshard", unplanned)
    assert costs == [partitioned.of(barrier, 0, work, pair) for pair in pairs]
    assert planned.partitioned < partitioned.partitioned


def test_collectives_of_a_cycle_are_exposed() -> None:
    """Each iteration waits for the sum of the previous one, and nothing else can run meanwhile."""

    def power(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 16, lambda _, x: x @ w, x)

    module = sdy.from_jax(power, float_array(8192, 8192), float_array(4096, 8192))
    estimated, true = costs(module, ["x", None], [None, "x"])
    assert estimated.overlap < 0.05 * estimated.seconds
    assert estimated.seconds == pytest.approx(true.seconds, rel=0.05)
