"""Layouts as Python: trees of `PartitionSpec`s, patterns of paths, and files that apply them without sdy."""

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, PartitionSpec

import sdy
from sdy.passes.python_layouts.formats import FORMATS
from sdy.passes.python_layouts.rules import Item, find_rules, value_of
from sdy.tools.sdy_auto import main

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
    return sdy.auto(sdy.from_jax(step, *ARGUMENTS), mesh=AXES, hardware="cpu-8").specs()


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
        "print(placed['layers'][2]['w'].sharding.spec == layout.ARGUMENTS.get('w', layout.ARGUMENTS['*']))\n"
    )
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_the_file_says_what_a_device_receives(planned: sdy.Specs) -> None:
    assert planned.received is not None
    assert f"{round(planned.received.under_jax):,}" in planned.to_python().replace("\n", " ")


@pytest.mark.parametrize("form", FORMATS)
def test_ruff_keeps_the_file(planned: sdy.Specs, form: str) -> None:
    text = planned.to_python(form)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            ["ruff", *command, "--isolated", "--stdin-filename=layout.py", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
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
    model = eqx.nn.MLP(8, 8, 16, 2, key=jax.random.key(0))

    def apply(model: Any, x: jax.Array) -> Any:
        return jax.vmap(model)(x)

    forward = eqx.filter_jit(apply)
    module = sdy.from_jax(forward, model, jnp.ones((8, 8)))
    names = executed(sdy.auto(module, mesh=AXES, hardware="cpu-8").specs().to_python("equinox"))
    placed = names["shard"](model)
    assert placed.layers[0].weight.sharding.mesh.shape == AXES
    assert placed.activation is model.activation


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
