"""Layouts as Python: trees of `PartitionSpec`s, patterns of paths, and files that apply them without sdy."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sdy
from samples import sample
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.python_layouts.constrained import constrain
from sdy.passes.python_layouts.rules import Item, find_rules, value_of
from sdy.passes.python_layouts.specs import FORMATS
from sdy.tools.sdy_auto import main

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("python layouts")

P = PartitionSpec


class State(NamedTuple):
    mu: Any
    count: Any


def step(params: Any, state: State, x: jax.Array) -> Any:
    def loss(params: Any) -> jax.Array:
        hidden = x
        for layer in params["layers"]:
            hidden = jnp.tanh(hidden @ layer["w"] + layer["b"])
        return jnp.mean(hidden**2)

    mu = jax.tree.map(lambda old, new: 0.9 * old + new, state.mu, jax.grad(loss)(params))
    return jax.tree.map(lambda old, new: old - 0.1 * new, params, mu), State(mu, state.count + 1)


def array(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, "float32")


PARAMS = {"layers": [{"w": array(64, 64), "b": array(64)} for _ in range(3)]}
ARGUMENTS = (PARAMS, State(PARAMS, array()), array(32, 64))
AXES = {"data": 4, "model": 2}


@pytest.fixture(scope="module")
def planned() -> sdy.Specs:
    specs = sdy.auto(sdy.from_jax(step, *ARGUMENTS), mesh=AXES, hardware="cpu-8", memory="80K").specs()
    assert specs.equation_rules
    return specs


def executed(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(text, names)
    return names


def specs_of(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.spec, tree)


def test_trees_have_the_structure_of_arguments_and_results(planned: sdy.Specs) -> None:
    assert jax.tree.structure(planned.arguments) == jax.tree.structure((ARGUMENTS, {}))
    assert jax.tree.structure(planned.results) == jax.tree.structure(jax.eval_shape(step, *ARGUMENTS))


def test_the_file_gives_the_same_specs_to_all_arguments_and_to_one(planned: sdy.Specs) -> None:
    names = executed(planned.to_python())
    ours, _ = planned.arguments
    assert specs_of(names["shardings"](ARGUMENTS, names["mesh"])) == ours
    assert specs_of(names["shardings"](PARAMS)) == ours[0]
    results = jax.eval_shape(step, *ARGUMENTS)
    assert specs_of(names["shardings"](results, names["mesh"], names["RESULTS"])) == planned.results


def test_the_file_runs_in_a_process_without_sdy(planned: sdy.Specs, tmp_path: Path) -> None:
    (tmp_path / "layout.py").write_text(planned.to_python())
    (tmp_path / "use.py").write_text(
        "import sys\n"
        "sys.modules['sdy'] = None\n"
        "import jax, jax.numpy as jnp, layout\n"
        "params = {'layers': [{'w': jnp.ones((64, 64)), 'b': jnp.ones(64)} for _ in range(3)]}\n"
        "placed = jax.device_put(params, layout.shardings(params, layout.mesh))\n"
        "print(placed['layers'][2]['w'].sharding.spec)\n"
    )
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"{planned.arguments[0][0]['layers'][2]['w']}\n", done.stderr


def test_the_file_says_what_a_device_receives(planned: sdy.Specs) -> None:
    assert planned.received is not None
    assert f"{round(planned.received.under_jax):,}" in planned.to_python().replace("\n", " ")


def test_the_files_are_formatted_and_typed(planned: sdy.Specs, tmp_path: Path) -> None:
    for form in FORMATS:
        (tmp_path / f"layout_{form}.py").write_text(planned.to_python(form))
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic", "reportMissingImports": "none"}')
    for command in (
        ["ruff", "check", "--isolated", "."],
        ["ruff", "format", "--check", "--isolated", "."],
        ["pyright", "--pythonpath", sys.executable, *(f"layout_{form}.py" for form in sample(FORMATS, one_in=3))],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stdout + done.stderr


def test_an_unknown_format_is_refused(planned: sdy.Specs) -> None:
    with pytest.raises(ValueError, match="format must be one of 'jax', 'flax'"):
        planned.to_python("keras")


def test_logical_axes_of_flax_lead_to_the_same_specs(planned: sdy.Specs) -> None:
    names = executed(planned.to_python("flax"))
    rules = dict(names["LOGICAL_AXIS_RULES"])
    logical = names["logical_axes"](ARGUMENTS)
    found = jax.tree.map(lambda spec: P(*(each and rules[each] for each in spec)), logical)
    assert found == planned.arguments[0]


def test_names_of_torch_lead_to_the_same_specs(planned: sdy.Specs) -> None:
    names = executed(planned.to_python("torch"))
    assert P(*names["of_parameter"]("layers.1.w")) == planned.arguments[0][0]["layers"][1]["w"]


def test_equinox_modules_have_a_tree_of_shardings() -> None:
    eqx = pytest.importorskip("equinox")

    class Scaled(eqx.Module):  # type: ignore[misc, name-defined]
        value: jax.Array
        layers: Any

        def __call__(self, x: jax.Array) -> Any:
            return self.layers(x) * self.value

    model = Scaled(jnp.ones(8), eqx.nn.MLP(8, 8, 16, 2, key=jax.random.key(0)))

    def forward(model: Any, x: jax.Array) -> Any:
        return jax.vmap(model)(x)

    module = sdy.from_jax(eqx.filter_jit(forward), model, jnp.ones((8, 8)))
    specs = sdy.auto(module, mesh=AXES, hardware="cpu-8", memory=1400).specs()
    placed = executed(specs.to_python("equinox"))["shard"](model)
    wanted = {"/".join(keys[1:]): spec for keys, spec in specs.argument_specs if keys[0] == "model"}
    arrays = jax.tree_util.tree_flatten_with_path(eqx.filter(placed, eqx.is_array))[0]
    found = {jax.tree_util.keystr(path, simple=True, separator="/"): leaf.sharding.spec for path, leaf in arrays}
    assert {key: found[key] for key in wanted} == wanted
    assert {*wanted.values()} != {P()}
    assert placed.layers.activation is model.layers.activation


@pytest.fixture(scope="module")
def flax_planned() -> tuple[Any, sdy.Specs]:
    """Return a module of Flax and the layout of its application."""
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.layers = nnx.List([nnx.Linear(16, 16, rngs=nnx.Rngs(0)) for _ in range(3)])

        def __call__(self, x: jax.Array) -> Any:
            for layer in self.layers:
                x = jnp.tanh(layer(x))
            return x

    model = Model()

    def forward(model: Any, x: jax.Array) -> Any:
        return model(x)

    module = sdy.from_jax(nnx.jit(forward), model, jnp.ones((8, 16)))
    return model, sdy.auto(module, mesh=AXES, hardware="cpu-8", memory=2400).specs()


@pytest.mark.parametrize("form", ["flax", "maxtext"])
def test_flax_modules_have_logical_axes(flax_planned: tuple[Any, sdy.Specs], form: str) -> None:
    nnx = pytest.importorskip("flax.nnx")
    linen = pytest.importorskip("flax.linen")
    model, specs = flax_planned
    names = executed(specs.to_python(form))
    state = nnx.state(model)
    shardings = linen.logical_to_mesh_sharding(names["logical_axes"](state), names["mesh"], names["LOGICAL_AXIS_RULES"])
    placed = jax.device_put(state, shardings)
    found = {
        jax.tree_util.keystr(path, simple=True, separator="/").removesuffix("/value"): leaf.sharding
        for path, leaf in jax.tree_util.tree_flatten_with_path(placed)[0]
    }
    wanted = {"/".join(keys[1:]): spec for keys, spec in specs.argument_specs if keys[0] == "model"}
    assert found.keys() == wanted.keys()
    assert {*wanted.values()} != {P()}
    for key, spec in wanted.items():
        assert found[key].is_equivalent_to(NamedSharding(names["mesh"], spec), 1 + ("kernel" in key)), key
    assert names.get("MESH_AXES", ["data", "model"]) == ["data", "model"]


def test_torch_modules_are_distributed_by_the_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def apply(params: Any, x: jax.Array) -> Any:
        for layer in params["layers"]:
            x = jnp.tanh(x @ layer["weight"].T + layer["bias"])
        return x

    params = {"layers": [{"weight": array(64, 64), "bias": array(64)} for _ in range(11)]}
    module = sdy.from_jax(apply, params, array(32, 64))
    specs = sdy.auto(module, mesh=AXES, hardware="cpu-8", memory=64_000, time_limit=5).specs()
    (tmp_path / "layout.py").write_text(specs.to_python("torch"))
    (tmp_path / "use.py").write_text(TORCH)
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sharded = {".".join(keys[1:]): spec for keys, spec in specs.argument_specs if keys[0] == "params"}
    assert json.loads(done.stdout) == {name: [*map(str, spec)] for name, spec in sharded.items()}


TORCH = """
import json
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_module
from torch.testing._internal.distributed.fake_pg import FakeStore

import layout

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(11))

dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
mesh = init_device_mesh("cpu", layout.MESH_SHAPE, mesh_dim_names=layout.MESH_NAMES)
model = Model()
model = distribute_module(model, mesh, layout.partition(model))
for name, parameter in model.named_parameters():
    dims = [entry if isinstance(entry, tuple) else (entry,) for entry in layout.of_parameter(name)]
    sizes = dict(zip(layout.MESH_NAMES, layout.MESH_SHAPE))
    whole = list(parameter.shape)
    for dim, axes in enumerate(dims):
        for axis in axes:
            whole[dim] //= sizes.get(axis, 1)
    assert list(parameter.to_local().shape) == whole
print(json.dumps({name: [str(entry) for entry in spec] for name, spec in layout.shardings(model).items()}))
"""


def perceptron(params: Any, x: jax.Array, y: jax.Array) -> Any:
    def loss(params: Any) -> jax.Array:
        hidden = x
        for layer in params["layers"]:
            hidden = jnp.tanh(hidden @ layer["w"] + layer["b"])
        return jnp.mean((hidden - y) ** 2)

    return jax.tree.map(lambda old, new: old - 0.1 * new, params, jax.grad(loss)(params))


def scanned_perceptron(params: Any, x: jax.Array, y: jax.Array) -> Any:
    def loss(params: Any) -> jax.Array:
        def layer(hidden: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            return jax.nn.relu(hidden @ w), None

        return jnp.mean((lax.scan(jax.checkpoint(layer), x, params)[0] - y) ** 2)

    return params - 0.1 * jax.grad(loss)(params)


CONSTRAINED = {
    "layers": (
        perceptron,
        ({"layers": [{"w": array(128, 128), "b": array(128)}] * 2}, array(256, 128), array(256, 128)),
        "300K",
    ),
    "layers in a loop": (scanned_perceptron, (array(4, 128, 128), array(256, 128), array(256, 128)), "600K"),
}


@pytest.mark.parametrize("name", sample(reversed(CONSTRAINED)))
def test_the_file_constrains_equations_so_that_a_device_receives_no_more(name: str) -> None:
    function, arguments, memory = CONSTRAINED[name]
    module = sdy.from_jax(function, *arguments)
    found = sdy.auto(module, mesh=AXES, hardware="cpu-8", memory=memory).specs()
    assert found.received_alone is not None
    assert found.received is not None
    assert found.received_alone.is_more
    assert not found.received.is_more
    names = executed(found.to_python())
    results = jax.eval_shape(function, *arguments)
    jitted = jax.jit(
        names["constrained"](function),
        in_shardings=names["shardings"](arguments),
        out_shardings=names["shardings"](results, rules=names["RESULTS"]),
    )
    compiled = jitted.lower(*arguments).compile()
    assert bytes_received(compiled.as_text() or "", 8) == found.received.under_jax
    keys = iter(jax.random.split(jax.random.key(0), 16))
    given = jax.tree.map(lambda each: 0.1 * jax.random.normal(next(keys), each.shape), arguments)
    for ours, theirs in zip(jax.tree.leaves(compiled(*given)), jax.tree.leaves(function(*given)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_constraints_of_another_function_are_refused() -> None:
    function, arguments, _ = CONSTRAINED["layers"]
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    constrained = constrain(function, mesh, {"dot_general/float32(8,8)/0": P("data"), "*": None})
    with pytest.raises(ValueError, match=r"no equation of the function matches \['dot_general/float32\(8,8\)/0'\]"):
        jax.eval_shape(constrained, *arguments)


HOSTILE = ["it's", '"', "'\"", "a/b", "*", "[x]", "?", "class", "", "ü\n", "\\", "value", "1", "a b", "{x}"]


def test_hostile_keys_come_out_right() -> None:
    sizes = {key: 8 * (index + 1) for index, key in enumerate(HOSTILE)}
    tree = {key: array(size, 16) for key, size in sizes.items()}
    mesh = jax.make_mesh((4, 2), ("data", 'it\'s "x"'), axis_types=(AxisType.Auto,) * 2)
    data, model = mesh.axis_names
    choices = P(data), P(None, model), P(model, data)
    given = {key: choices[index % 3] for index, key in enumerate(HOSTILE)}
    lowered = sdy.jit(lambda tree: jax.tree.map(jnp.tanh, tree), mesh=mesh, in_shardings=(given,)).lower(tree)
    found = sdy.specs(lowered)
    names = executed(found.to_python())
    shardings = specs_of(names["shardings"]((tree,)))
    assert shardings == (found.arguments[0][0],) == (given,)


def test_a_part_of_an_axis_is_an_axis_of_the_file() -> None:
    module = sdy.parse("""
        sdy.mesh @mesh = <["x"=8]>
        func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>})
            -> tensor<8x8xf32> {
          %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }""")
    found = sdy.specs(module)
    assert found.arguments == {"0": P("x_0", "x_1")}
    assert executed(found.to_python())["mesh"].shape == {"x_0": 2, "x_1": 4}


def test_rules_are_few() -> None:
    items = [
        Item((owner, "blocks", str(index), layer, "kernel"), value)
        for owner in ("params", "mu")
        for index in range(12)
        for layer, value in (("q", "columns"), ("k", "columns"), ("o", "rows"))
    ]
    rules = find_rules([*items, Item(("params", "embedding"), "rows")])
    assert rules is not None
    assert len(rules) == 3


def test_rules_tell_layers_apart() -> None:
    items = [Item(("blocks", str(index), "w"), "first" if index < 1 else "rest") for index in range(12)]
    rules = find_rules(items)
    assert rules is not None
    assert len(rules) == 2
    assert all(value_of(rules, "/".join(keys)) == value for keys, value in items)


def test_equal_paths_with_different_values_have_no_rules() -> None:
    assert find_rules([Item(("a/b",), 1), Item(("a", "b"), 2)]) is None


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    program, layout = tmp_path / "step.mlir", tmp_path / "layout.py"
    program.write_text(sdy.format(sdy.from_jax(step, *ARGUMENTS)))
    assert main([str(program), "--mesh", "data=4,model=2", "--hardware", "cpu-8", "--emit-python", str(layout)]) == 0
    assert executed(layout.read_text())["mesh"].shape == AXES
