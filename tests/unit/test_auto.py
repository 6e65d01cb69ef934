"""Automatic choice of shardings."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint

import sdy
from descent_programs import UNEVEN_PRODUCT, argument_dims, train_step
from samples import sample
from sdy.diagnostics import capture
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.ops import MeshOp
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding
from sdy.ir.editing import insert
from sdy.ir.walking import operations
from sdy.passes.auto.auto import prepared
from sdy.passes.auto.choices import find_choices
from sdy.passes.auto.estimate import Estimator
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import FoldedProgram, fold
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.overlap import Spread, Spreads, exposed_seconds
from sdy.passes.auto.plan import Plan
from sdy.passes.auto.search import Search
from sdy.passes.auto.truth import LayoutOfModule, truth_of
from sdy.passes.common.call_graph import main_function
from sdy.passes.spmd.costs.hardware import Link, hardware_of

MESH = {"data": 4, "model": 2}
TPU = hardware_of("tpu-v5p")


def test_data_parallelism_is_found_where_the_batch_is_large() -> None:
    module = sdy.parse(train_step(2, 2**18, 1024, 4096))
    plan = sdy.auto(module, mesh=MESH, hardware=TPU)
    *_, x, target = argument_dims(module)
    assert x == target == ['"data","model"', ""]
    # The costs of layouts that are not partitioned are estimates.
    assert plan.cost.seconds <= 1.01 * min(cost.seconds for cost in plan.others.values())


def test_tensor_parallelism_is_found_where_the_parameters_are_large() -> None:
    """The first product is sharded by columns and the second by rows, as in Megatron."""
    module = sdy.parse(train_step(2, 64, 8192, 32768))
    sdy.auto(module, mesh={"model": 8}, hardware=TPU)
    w0, u0, w1, u1, *_ = argument_dims(module)
    assert w0 == w1 == ["", '"model"']
    assert u0 == u1 == ['"model"', ""]


def test_parameters_are_sharded_where_memory_forces_it() -> None:
    text = train_step(2, 2**16, 4096, 16384)
    module = sdy.parse(text)
    plan = sdy.auto(module, mesh={"data": 8}, hardware=TPU, memory="4G")
    assert plan.fits
    assert plan.others["data parallel over data"].memory > plan.memory
    *state, x, _ = argument_dims(module)
    assert x == ['"data"', ""]
    assert all(any(dims) for dims in state)


def transformer_step(layers: int, batch: int, length: int, width: int, heads: int) -> ModuleOp:
    """Return a step of gradient descent of a transformer, with layer parameters q, k, v and o, up and down."""
    shapes = {
        **dict.fromkeys("qkv", (width, heads, width // heads)),
        "o": (heads, width // heads, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }

    def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
        q, k, v = (jnp.einsum("bsw,whd->bhsd", x, w[name]) for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k))
        x = x + jnp.einsum("bhqk,bhkd,hdw->bqw", weights, v, w["o"])
        return x + jax.nn.relu(x @ w["up"]) @ w["down"]

    def loss(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
        for w in params:
            x = layer(x, w)
        return jnp.mean(x**2)

    def step(params: list[dict[str, jax.Array]], x: jax.Array) -> list[dict[str, jax.Array]]:
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, jax.grad(loss)(params, x))

    params = [{name: jax.ShapeDtypeStruct(shape, "float32") for name, shape in shapes.items()}] * layers
    return sdy.from_jax(step, params, jax.ShapeDtypeStruct((batch, length, width), "float32"))


def parameter_dims(plan: Plan) -> dict[str, str]:
    """Return the shardings of a transformer's parameters, by their names in all layers."""
    return {
        name.split("'")[-2]: format_dims(row.sharding) for row in plan.rows for name in row.names if "params" in name
    }


def test_megatron_is_found_where_the_batch_is_small() -> None:
    """Heads and the columns of the first product are sharded; the second product is all-reduced."""
    plan = sdy.auto(transformer_step(2, 1, 512, 2048, 16), mesh={"model": 8}, hardware="h100-8")
    assert parameter_dims(plan) == {
        **dict.fromkeys("qkv", '[{}, {"model"}, {}]'),
        "o": '[{"model"}, {}, {}]',
        "up": '[{}, {"model"}]',
        "down": '[{"model"}, {}]',
    }


def test_parameters_are_sharded_if_the_batch_is_large_and_links_are_slow() -> None:
    """All-gathers of parameters cost less than all-reduces of activations, and as much as those of gradients."""
    slow = replace(TPU, links=[(8, Link(5e9, 1e-6))])
    plan = sdy.auto(transformer_step(2, 512, 512, 2048, 16), mesh={"data": 8}, hardware=slow)
    *parameters, x = plan.rows
    assert x.sharding is not None
    assert format_dims(x.sharding) == '[{"data"}, {}, {}]'
    # One gradient may be reduced beside computation that nothing else hides.
    assert len([row for row in parameters if row.sharding is None or row.sharding.is_fully_replicated]) <= 1


def test_a_layout_that_fits_is_found_if_memory_is_short() -> None:
    """Activations are sharded too, or recomputed, which takes longer."""
    text = train_step(4, 4096, 8192, 32768)
    slow = replace(TPU, asynchronous=frozenset(), links=[(1024, Link(3e11, 1e-4))])
    ample = sdy.auto(sdy.parse(text), mesh={"model": 8}, hardware=slow)
    module = sdy.parse(text)
    scarce = sdy.auto(module, mesh={"model": 8}, hardware=slow, memory=0.9 * ample.cost.memory)
    assert scarce.fits
    assert ample.cost.seconds < scarce.cost.seconds < 1.2 * ample.cost.seconds
    assert any(map(any, argument_dims(module)[-2:])) or "recomputed" in str(scarce)
    front = scarce.pareto()
    assert len(front) > 1
    assert [cost.seconds for cost in front] == sorted(cost.seconds for cost in front)
    assert [cost.memory for cost in front] == sorted((cost.memory for cost in front), reverse=True)
    assert not any(cost.seconds <= ample.cost.seconds and cost.memory < scarce.memory for cost in front)


def test_a_limit_that_a_plan_needs_leaves_it() -> None:
    """The estimate of its memory is higher, so that only the search without the limit finds it."""
    module, mesh = sdy.parse(train_step(2, 1024, 512, 2048)), {"data": 4, "model": 2}
    ample = sdy.auto(module.clone(), mesh=mesh, hardware="h100-8")
    limited = sdy.auto(module, mesh=mesh, hardware="h100-8", memory=ample.cost.memory)
    assert limited.cost.seconds == ample.cost.seconds


def test_partial_sums_and_gathered_operands_take_memory() -> None:
    """The contracted dimension is sharded, so that each device has a whole product before the sums are exchanged."""
    module = sdy.parse(f'sdy.mesh @mesh = <["data"=4, "model"=2]>\n{train_step(1, 4096, 64, 256)}')
    program = fold(prepared(module))
    estimator = Estimator(program, "mesh", TPU)
    for dims in (("data", None), (None, "data"), (("data", "model"), None), (None, ("data", "model"))):
        layout = dict.fromkeys(list(program.arguments)[:2], sdy.Sharding.of(*dims))
        shardings = {index: sharding for node, sharding in layout.items() for index in program.arguments[node]}
        true = truth_of(module, LayoutOfModule(shardings), "mesh", TPU).cost
        assert 0.75 * true.memory <= estimator.estimate(layout).cost.memory <= 1.25 * true.memory


def test_uneven_shardings_are_chosen_if_cheaper() -> None:
    """No axis divides the vocabulary, and the batch is 1: each device computes a padded shard of the columns."""
    module = sdy.parse(UNEVEN_PRODUCT)
    with capture():  # no argument can be sharded
        whole = sdy.auto(module.clone(), mesh={"model": 8}, hardware=TPU, intermediates=False)
    plan = sdy.auto(module, mesh={"model": 8}, hardware=TPU)
    assert plan.cost.seconds < 0.5 * whole.cost.seconds
    assert [format_dims(row.sharding) for row in plan.rows] == ["replicated", "replicated", '[{}, {"model"}]']
    assert plan.rows[1].runner_up is None


def test_parameters_that_no_axis_divides_are_replicated() -> None:
    module = sdy.parse(train_step(2, 64, 8, 5))
    sdy.auto(module, mesh={"data": 4, "model": 3}, hardware=TPU)
    w0, u0, w1, u1, x, target = argument_dims(module)
    assert all('"model"' not in dims for dims in (w0, u0, w1, u1))
    assert x == target


def test_empty_tensor_is_not_sharded() -> None:
    module = sdy.parse("""
        func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x0xf32>) {
          %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
            : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
          %1 = stablehlo.slice %0 [0:64, 8:8] : (tensor<64x64xf32>) -> tensor<64x0xf32>
          %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]
            : (tensor<64x64xf32>, tensor<64x0xf32>) -> tensor<64x0xf32>
          return %0, %2 : tensor<64x64xf32>, tensor<64x0xf32>
        }
    """)
    plan = sdy.auto(module, mesh=MESH, hardware=TPU)
    assert {row.type for row in plan.rows} == {"tensor<64x64xf32>"}


def test_plan_that_exceeds_memory_says_so() -> None:
    plan = sdy.auto(
        sdy.parse(train_step(1, 64, 256, 256)),
        mesh={"data": 2},
        hardware=TPU,
        memory="64K",
    )
    assert not plan.fits
    assert "TOO MUCH: no layout that needs less was found" in str(plan)
    assert len(plan.largest) == 3
    assert all("tensor<" in each for each in plan.largest)


def test_the_next_values_of_the_state_are_split_as_the_state() -> None:
    module = sdy.parse(train_step(1, 2**16, 4096, 16384))
    sdy.auto(module, mesh={"data": 8}, hardware=TPU, memory="1.5G")
    main = main_function(module)
    for index in range(2):
        assert func_result_sharding(main, index) == func_arg_sharding(main, index)


def test_what_is_given_stays() -> None:
    text = train_step(1, 64, 256, 256).replace(
        "%w0: tensor<256x256xf32>", '%w0: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}'
    )
    module = sdy.parse('sdy.mesh @mesh = <["data"=4, "model"=2]>\n' + text)
    plan = sdy.auto(module, hardware=TPU)
    assert argument_dims(module)[0] == ["", '"model"']
    assert not any(0 in row.arguments for row in plan.rows)


def test_search_size_is_independent_of_the_number_of_layers() -> None:
    few, many = (folded(train_step(layers, 64, 128, 256)) for layers in (12, 24))
    assert len(few.operations) == len(many.operations)
    assert len(few.snapshot.kinds) == len(many.snapshot.kinds)
    counts = [sum(each.times for each in program.operations) for program in (few, many)]
    modules = [program.module for program in (few, many)]
    assert counts[1] - counts[0] == len(operations(modules[1])) - len(operations(modules[0]))


def folded(text: str) -> FoldedProgram:
    """Return the folded program of a module on the mesh."""
    return fold(prepared(sdy.parse(f'sdy.mesh @mesh = <["data"=4, "model"=2]>\n{text}')))


def layouts(program: FoldedProgram) -> Iterator[dict[int, sdy.Sharding]]:
    """Return the layouts that shard some arguments along their dimensions."""
    nodes = list(program.arguments)[:4]
    options = [sdy.Sharding.of(None, None), sdy.Sharding.of("data", None), sdy.Sharding.of(None, "model")]
    for chosen in product(options, repeat=len(nodes)):
        yield dict(zip(nodes, chosen, strict=True))


def test_estimates_agree_with_the_partitioner() -> None:
    module = sdy.parse(f'sdy.mesh @mesh = <["data"=4, "model"=2]>\n{train_step(3, 64, 64, 256)}')
    program = fold(prepared(module))
    estimator = Estimator(program, "mesh", TPU)
    ratios: list[float] = []
    for layout in sample(layouts(program), one_in=4):
        shardings = {index: sharding for node, sharding in layout.items() for index in program.arguments[node]}
        true = truth_of(module, LayoutOfModule(shardings), "mesh", TPU).cost
        ratios.append(estimator.estimate(layout).cost.seconds / true.seconds)
    assert 0.9 <= min(ratios) <= max(ratios) <= 1.16


def test_of_what_is_too_much_a_bound_is_told() -> None:
    program = folded(train_step(3, 64, 64, 256))
    for layout in sample(layouts(program), one_in=4):
        exact = Estimator(program, "mesh", TPU).estimate(layout)
        assert exact.is_exact
        half = exact.cost.seconds / 2
        bound = Estimator(program, "mesh", TPU).estimate(layout, lambda cost: cost.seconds > half)  # noqa: B023
        assert half < bound.cost.seconds <= exact.cost.seconds * (1 + 1e-9)
        assert bound.cost.memory <= exact.cost.memory


def test_the_ends_of_a_stack_are_chosen_with_the_layers_in_between() -> None:
    def step(params: list[dict[str, jax.Array]], x: jax.Array) -> list[dict[str, jax.Array]]:
        def loss(params: list[dict[str, jax.Array]]) -> jax.Array:
            y = x
            for layer in params:
                y = y + jax.nn.relu(y @ layer["up"]) @ layer["down"]
            return jnp.mean(y**2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    layer = {"up": jax.ShapeDtypeStruct((64, 256), "float32"), "down": jax.ShapeDtypeStruct((256, 64), "float32")}
    module = sdy.from_jax(step, [layer] * 12, jax.ShapeDtypeStruct((512, 64), "float32"))
    mesh = sdy.Mesh.of(MESH)
    insert(MeshOp("mesh", mesh), InsertPoint.at_start(module.body.block))
    choices = find_choices(fold(prepared(module)), "mesh", mesh)
    # The first layer passes nothing that it has learned to an earlier one.
    assert [choice.arguments for choice in choices] == [[*range(0, 24, 2)], [1], [*range(3, 24, 2)], [24]]


def test_experts_shard_data_in_two_dimensions() -> None:
    """A batch over one axis and positions over the other, as images are sharded by batch and rows."""
    module, mesh = transformer_step(1, 4, 16, 32, 2), sdy.Mesh.of(MESH)
    insert(MeshOp("mesh", mesh), InsertPoint.at_start(module.body.block))
    program = fold(prepared(module))
    *state, data = find_choices(program, "mesh", mesh)
    search = Search(Estimator(program, "mesh", TPU), [*state, data], (), math.inf, Limits(), lambda _: None)
    layouts = dict(expert_layouts([*state, data], mesh, search))
    sharded = layouts["fully sharded over data, and over all others in dimension 1"]
    assert format_dims(sharded[data.node]) == '[{"data"}, {"model"}, {}]'
    assert all(not sharded[choice.node].is_fully_replicated for choice in state)


def test_experts_shard_the_batch_of_tokens_and_caches() -> None:
    """A decoding step returns caches and no parameters, so that its batch is a dimension of data and of state."""

    def step(w: jax.Array, keys: jax.Array, values: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
        new = x[:, None] @ w
        keys, values = jnp.roll(keys, 1, 1) + new, jnp.roll(values, 1, 1) - new
        return keys, values, jnp.einsum("btd,btd->bd", keys, values)[:, :16]

    shapes = (32, 32), (8, 64, 32), (8, 64, 32), (8, 32)
    module = sdy.from_jax(step, *[jax.ShapeDtypeStruct(shape, "float32") for shape in shapes])
    mesh = sdy.Mesh.of(MESH)
    insert(MeshOp("mesh", mesh), InsertPoint.at_start(module.body.block))
    program = fold(prepared(module))
    choices = find_choices(program, "mesh", mesh)
    search = Search(Estimator(program, "mesh", TPU), choices, (), math.inf, Limits(), lambda _: None)
    layout = dict(expert_layouts(choices, mesh, search))["data parallel over data with caches"]
    shardings = {format_dims(layout[choice.node]) for choice in choices if choice.shape[0] == shapes[-1][0]}
    assert shardings == {'[{"data"}, {}, {}]', '[{"data"}, {}]'}
    assert all(choice.node not in layout for choice in choices if choice.shape == shapes[0])


def test_search_changes_two_dependent_arguments_together() -> None:
    """Sharding the columns of `u` and all of `x` beats rows of `u` and columns of `x`; each single change is worse."""

    def step(u: jax.Array, v: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        gradients = jax.grad(lambda u, v: jnp.mean((jax.nn.relu(x @ u) @ v - x) ** 2), (0, 1))(u, v)
        return u - 0.1 * gradients[0], v - 0.1 * gradients[1]

    shapes = (8192, 1024), (1024, 8192), (2048, 8192)
    module = sdy.from_jax(step, *[jax.ShapeDtypeStruct(shape, "float32") for shape in shapes])
    one_after_the_other = replace(hardware_of("h100"), asynchronous=frozenset())
    sdy.auto(module, mesh={"data": 8}, hardware=one_after_the_other)
    assert argument_dims(module) == [["", '"data"'], ["", '"data"'], ["", ""]]


def test_nothing_is_sharded_if_communication_dominates() -> None:
    module = sdy.parse(train_step(1, 16, 16, 16))
    sdy.auto(module, mesh=MESH, hardware=replace(TPU, links=[(1024, Link(1e9, 1.0))]))
    assert not any(any(dims) for dims in argument_dims(module)[:2])


def test_no_plan_is_faster_than_the_bound() -> None:
    plan = sdy.auto(sdy.parse(train_step(1, 512, 256, 1024)), mesh=MESH, hardware=TPU)
    assert 0 < plan.least_seconds <= plan.cost.seconds


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        (train_step(1, 8, 8, 8), {}, "the module has no mesh: specify one"),
        (
            'sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["y"=2]>\n' + train_step(1, 8, 8, 8),
            {},
            "has 2 meshes, but",
        ),
        (
            'sdy.mesh @mesh = <["x"=2]>\n' + train_step(1, 8, 8, 8),
            {"mesh": {"x": 4}},
            "the module already has a mesh, @mesh with x=2: omit the other one",
        ),
        (train_step(1, 8, 8, 8), {"mesh": MESH, "hardware": "abacus"}, "no hardware preset or file has this name"),
        ("func.func private @main(tensor<8xf32>)", {"mesh": MESH}, "function named @main|no body"),
    ],
)
def test_what_cannot_be_is_told(text: str, options: dict[str, object], problem: str) -> None:
    with pytest.raises(sdy.DiagnosticError, match=problem):
        sdy.auto(sdy.parse(text), **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "function", [partial(sdy.auto, mesh=MESH), sdy.propagate, sdy.partition, sdy.interpret, sdy.format, sdy.parse]
)
def test_a_jax_program_instead_of_a_module_is_an_error(function: Callable[[Any], object]) -> None:
    """The message names the function that converts it."""
    lowered = jax.jit(jnp.tanh).lower(jax.ShapeDtypeStruct((8, 8), "float32"))
    with pytest.raises(TypeError, match=r"expected (a module|an operation|MLIR text), not Lowered; sdy\.from_jax"):
        function(lowered)


def test_axes_that_nothing_can_be_split_over_are_told() -> None:
    module = sdy.parse("""
        func.func @main(%x: tensor<8x6xf32> loc("x")) -> tensor<8x6xf32> {
          %0 = stablehlo.tanh %x : tensor<8x6xf32>
          return %0 : tensor<8x6xf32>
        }
    """)
    with capture() as told:
        plan = sdy.auto(module, mesh={"data": 64, "model": 2}, hardware=TPU)
    assert plan.fits
    assert [diagnostic.message for diagnostic in told] == [
        "axis 'data' of size 64 cannot shard any tensor, since it divides no dimension; the largest dimension is 8, of "
        "argument 0 (x)"
    ]


def test_given_shardings_that_contradict_each_other_are_told() -> None:
    module = sdy.parse("""
        sdy.mesh @mesh = <["data"=4]>
        func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                        %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}) -> tensor<8x8xf32> {
          sdy.sharding_group %x group_id = 0 : tensor<8x8xf32>
          sdy.sharding_group %y group_id = 0 : tensor<8x8xf32>
          %0 = stablehlo.add %x, %y : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }
    """)
    with capture() as told:
        sdy.auto(module, hardware=TPU)
    (diagnostic,) = told
    assert "The initial operand shardings on the sharding groups of groupID: 0 do not match" in diagnostic.message


@pytest.mark.parametrize(
    ("ahead", "collectives", "exposed"),
    [
        (False, [((1, 1), 5.0)], 0.0),
        (False, [((2, 2), 5.0)], 2.0),
        (False, [((3, 3), 5.0)], 5.0),
        (False, [((2, 2), 1.0), ((3, 3), 1.0)], 1.0),
        (False, [((0, 3), 8.0)], 2.0),
        (True, [((0, 0), 5.0)], 5.0),
        (True, [((1, 1), 5.0)], 2.0),
        (True, [((2, 2), 5.0)], 0.0),
        (True, [], 0.0),
    ],
)
def test_collectives_are_exposed_where_no_computation_runs_beside_them(
    ahead: bool, collectives: list[Spread], exposed: float
) -> None:
    assert exposed_seconds(collectives, np.full(4, 3.0), ahead=ahead) == pytest.approx(exposed)


def test_operations_in_equal_layers_are_spread_evenly() -> None:
    layers = Spreads([(0, 9)]).by_position(np.array([10.0]))
    assert exposed_seconds([((0, 9), 5.0)], layers, ahead=False) == pytest.approx(0.5)
    assert exposed_seconds([((0, 9), 20.0)], layers, ahead=True) == pytest.approx(11.0)


def test_programs_may_be_deeper_than_the_recursion_limit() -> None:
    type_ = "tensor<64x64xf32>"
    product = f"%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({type_}, {type_}) -> {type_}"
    body = [product, *(f"%{number} = stablehlo.tanh %{number - 1} : {type_}" for number in range(1, 1200))]
    text = f"func.func @main(%x: {type_}, %w: {type_}) -> {type_} {{\n{chr(10).join(body)}\nreturn %1199 : {type_}\n}}"
    assert sdy.auto(sdy.parse(text), mesh=MESH, hardware="tpu-v5e").cost.seconds > 0
