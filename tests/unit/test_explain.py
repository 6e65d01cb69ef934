"""`sdy.explain`: traces of axes back to the user's shardings."""

import gc
import weakref

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import OpResult, SSAValue

import sdy
from propagation_modules import MODULES
from random_modules import random_module
from sdy.axes import AxisRef
from sdy.dialect.shardings import get_sharding
from sdy.passes.driver import run_passes
from sdy.passes.propagation.provenance.explanation import Chain, Explanation
from sdy.passes.spec import parse_pipeline
from sdy.text.printing.names import Names

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2, "c"=8]>\n'


def propagated(text: str, pipeline: str = "sdy-propagation-pipeline") -> ModuleOp:
    module = sdy.parse(text, "program.mlir")
    run_passes(module, parse_pipeline(pipeline))
    return module


def explained(module: ModuleOp, name: str) -> Explanation:
    return sdy.explain(module, name)


def steps_of(chain: Chain) -> list[str]:
    """Return the steps of a trace, the last one first, and its origin."""
    return [*(f"{hop.edge}: {hop.through}" for hop in chain.hops), chain.origin.text]


def test_each_axis_is_traced_to_its_argument() -> None:
    module = propagated(MODULES["chain"])
    rows, columns = explained(module, "%1").chains
    assert (rows.dimension, rows.axis) == (0, AxisRef("a"))
    assert steps_of(rows) == [
        "%1 <- %0: stablehlo.tanh, factor i=8",
        "%0 <- %arg0: stablehlo.dot_general, factor i=8",
        "given to argument 0 of @main",
    ]
    assert steps_of(columns)[-2:] == ["%0 <- %arg1: stablehlo.dot_general, factor j=8", "given to argument 1 of @main"]
    assert [hop.where and hop.where.line for hop in rows.hops] == [6, 4]


def test_a_number_is_no_value() -> None:
    with pytest.raises(TypeError, match=r'a source line such as "train\.py:18" or "18", not 18'):
        sdy.explain(propagated(MODULES["chain"]), 18)  # pyright: ignore[reportArgumentType]


def test_a_result_is_an_origin() -> None:
    chain = explained(propagated(MODULES["func result"]), "%arg0").chains[0]
    assert steps_of(chain) == [
        "%arg0 <- %0: stablehlo.add, factor i=8",
        "%0 <- result 0 of @main: func.return, factor i=8",
        "given to result 0 of @main",
    ]


def test_a_constraint_is_the_origin_of_a_sharding_copied_to_its_input() -> None:
    module = propagated(
        MESH
        + """
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.abs %x : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}"""
    )
    before, after = (explained(module, name).chains[0] for name in ("%arg0", "%2"))
    assert steps_of(before) == [
        "%arg0 <- %0: stablehlo.abs, factor i=8",
        "requested by sdy.sharding_constraint",
    ]
    assert steps_of(after) == ["%2 <- %1: stablehlo.tanh, factor i=8", "given to sdy.sharding_constraint"]
    assert after.origin.where is not None
    assert after.origin.where.line == 5


def test_axes_are_traced_to_and_through_a_manual_computation() -> None:
    module = propagated(MODULES["manual computation"])
    passed = explained(module, "%arg0").chains[1]
    assert steps_of(passed) == [
        "%arg0 <- %0: stablehlo.add, factor j=8",
        "%0 <- %arg2: sdy.manual_computation, factor j=8",
        "%arg2 <- %arg3: stablehlo.add, factor j=8",
        "%arg3 <- %arg1: sdy.manual_computation, factor j=8",
        "given to argument 1 of @main",
    ]
    assert steps_of(explained(module, "%1").chains[0]) == ["given to sdy.manual_computation in its out_shardings"]


def test_a_data_flow_edge_is_named_after_its_operation() -> None:
    module = propagated(MODULES["while"])
    chain = explained(module, "%2#1").chains[0]
    assert steps_of(chain) == ["%2#1 <- %arg0: stablehlo.while, factor i=8", "given to argument 0 of @main"]


def test_axes_are_traced_through_calls() -> None:
    text = (
        MESH
        + """
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%p: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %p : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    )
    module = propagated(text)
    assert steps_of(explained(module, "%0").chains[0]) == [
        "%0 <- @f:%0: func.call, factor i=8",
        "@f:%0 <- @f:%arg0: stablehlo.tanh, factor i=8",
        "@f:%arg0 <- %arg0: func.call, factor i=8",
        "given to argument 0 of @main",
    ]
    assert explained(module, "@f:%0").value == "%0"


def test_sub_axes_that_a_reshape_merges_are_one_axis() -> None:
    text = (
        MESH
        + """
func.func @main(%x: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c":(1)4}, {"c":(4)2}]>}) -> tensor<8xf32> {
  %0 = stablehlo.reshape %x : (tensor<4x2xf32>) -> tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<4x2xf32>
  return %0 : tensor<8xf32>
}"""
    )
    module = propagated(text, "sdy-basic-propagate")
    (merged,) = explained(module, "%0").chains
    assert merged.axis == AxisRef("c")
    assert steps_of(merged) == ["%0 <- %arg0: stablehlo.reshape, factor j=2", "given to argument 0 of @main"]


def test_an_axis_larger_than_the_factor_of_a_reshape_ends_its_projection() -> None:
    """Axis "c" of size 8 does not fit into a factor of 3, so the operand's factors 4 and 2 are not projected."""
    module = propagated(
        MESH
        + """
func.func @main(%x: tensor<8x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"c"}]>}) -> tensor<8x3x4x2xf32> {
  %0 = stablehlo.reshape %x : (tensor<8x24xf32>) -> tensor<8x3x4x2xf32>
  return %0 : tensor<8x3x4x2xf32>
}"""
    )
    (rows,) = explained(module, "%0").chains
    assert steps_of(rows) == ["%0 <- %arg0: stablehlo.reshape, factor i=8", "given to argument 0 of @main"]


def test_shardings_of_later_priorities_are_origins() -> None:
    module = propagated(MODULES["priorities"])
    origins = {chain.axis.name: chain.origin.text for chain in explained(module, "%1").chains}
    assert origins == {"b": "given to argument 2 of @main", "c": "given to argument 2 of @main"} | {
        "a": "given to argument 1 of @main"
    }


def test_axes_are_traced_through_a_sharding_group() -> None:
    module = propagated(MODULES["sharding group"])
    assert {chain.origin.text for chain in explained(module, "%1").chains} <= {
        "given to argument 0 of @main",
        "given to argument 1 of @main",
        "given to stablehlo.abs",
    }


def test_the_origin_of_an_operation_inserted_after_propagation() -> None:
    text = MODULES["chain"].replace('[{?}, {"b", ?}]', '[{"b"}, {?}]')
    pipeline = "sdy-propagation-pipeline{enable-insert-explicit-collectives=true}"
    module = propagated(text, pipeline)
    names = Names(generic=False)
    names.add(module)
    inserted = [value for value in names.values if isinstance(value, OpResult) and value.op.name.startswith("sdy.")]
    assert inserted
    texts = [chain.origin.text for value in inserted for chain in sdy.explain(module, value).chains]
    assert texts
    assert all("after propagation" in text for text in texts)


def test_axes_are_traced_through_consecutive_propagations() -> None:
    module = propagated(MODULES["chain"], "sdy-basic-propagate,sdy-user-priority-propagate,sdy-close-shardings")
    assert steps_of(explained(module, "%1").chains[0])[-1] == "given to argument 0 of @main"


@pytest.mark.parametrize("seed", range(40))
def test_every_axis_of_a_random_module_is_explained(seed: int) -> None:
    """Each axis is traced to an initial sharding, and each step begins where the previous one ended."""
    text = random_module(seed, num_operations=10 + seed // 4, priorities=seed % 3 == 0)
    module = propagated(text, "sdy-user-priority-propagate")
    names = Names(generic=False)
    names.add(module)
    for value in names.values:
        if get_sharding(value) is None:
            continue
        for chain in sdy.explain(module, value).chains:
            assert chain.origin.text.startswith(("given to", "requested by"))
            for hop, following in zip(chain.hops, chain.hops[1:], strict=False):
                assert hop.source == following.target


@pytest.mark.parametrize("seed", range(40, 60))
def test_values_are_explained_after_the_full_pipeline(seed: int) -> None:
    module = propagated(random_module(seed, num_operations=20))
    names = Names(generic=False)
    names.add(module)
    for value in names.values:
        for chain in sdy.explain(module, value).chains if get_sharding(value) else ():
            inserted = isinstance(value, OpResult) and value.op.name.startswith("sdy.")
            assert inserted or chain.origin.text.startswith(("given to", "requested by"))


def test_the_text_of_an_explanation() -> None:
    assert str(explained(propagated(MODULES["func result"]), "%arg0")).splitlines()[:4] == [
        '%arg0 has the sharding <@mesh, [{"a"}, {"b"}]>',
        "",
        '  dimension 0, axis "a"',
        "    %arg0 <- %0              stablehlo.add, factor i=8  (program.mlir:4:8)",
    ]


def test_errors_for_values_that_cannot_be_explained() -> None:
    module = sdy.parse(MODULES["chain"])
    value = argument(module)
    with pytest.raises(sdy.DiagnosticError, match="has not been propagated"):
        sdy.explain(module, value)
    sdy.propagate(module)
    with pytest.raises(sdy.DiagnosticError, match="not in the module"):
        sdy.explain(module, argument(module.clone()))


def argument(module: ModuleOp) -> SSAValue:
    return next(op for op in module.ops if isinstance(op, FuncOp)).args[0]


@pytest.mark.usefixtures("only_new_objects_are_collected")
def test_a_history_lives_as_long_as_its_module() -> None:
    module = propagated(MODULES["chain"])
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [("%9", "no value %9 in @main: it has %arg0 to %arg1, %0 to %1"), ("@g:%0", "there is no function @g")],
)
def test_errors_for_unknown_names(name: str, problem: str) -> None:
    with pytest.raises(sdy.DiagnosticError, match=problem):
        sdy.explain(propagated(MODULES["chain"]), name)


def test_a_value_and_its_name_have_the_same_explanation() -> None:
    module = propagated(MODULES["chain"])
    assert sdy.explain(module, "%arg0") == sdy.explain(module, argument(module)) == sdy.explain(module, "@main:%arg0")


def of_two(first: str, second: str, body: str) -> ModuleOp:
    """Return a propagated function of two vectors of eight elements with these shardings."""
    x, y = (f"{{sdy.sharding = #sdy.sharding<@mesh, {given}>}}" for given in (first, second))
    text = f"{MESH}func.func @main(%x: tensor<8xf32> {x}, %y: tensor<8xf32> {y}) -> tensor<8xf32> {{\n{body}\n}}"
    return propagated(text)


ADD = "%0 = stablehlo.add %x, %y : tensor<8xf32>\nreturn %0 : tensor<8xf32>"
BARRIER = """%0 = sdy.propagation_barrier %x allowed_direction=BACKWARD : tensor<8xf32>
%1 = stablehlo.add %0, %y : tensor<8xf32>
return %1 : tensor<8xf32>"""
RESHAPE = """%0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<4x2xf32>
%1 = sdy.sharding_constraint %0 <@mesh, [{}, {"b"}]> : tensor<4x2xf32>
%2 = stablehlo.reshape %1 : (tensor<4x2xf32>) -> tensor<8xf32>
return %2 : tensor<8xf32>"""


@pytest.mark.parametrize(
    ("first", "second", "body", "name", "missed"),
    [
        ('[{"a"}]', "[{}]", ADD, "%arg1", [('"a"', "%arg1 <- %arg0", "%arg1 is closed along this factor")]),
        ('[{"a"}]', '[{?}], replicated={"a"}', ADD, "%arg1", [('"a"', "%arg1 <- %arg0", "or unreduced along axis")]),
        (
            '[{"a"}]',
            '[{"b"}]',
            ADD,
            "%0",
            [
                ('"a"', "%0 <- %arg0", '%arg1 has axis "b" along this factor'),
                ('"b"', "%0 <- %arg1", '%arg0 has axis "a" along this factor'),
            ],
        ),
        ('[{"a"}]', "[{?}]", BARRIER, "%0", [('"a"', "%0 <- %arg0", "propagates no axis along this factor")]),
        (
            "[{?}]",
            "[{?}]",
            RESHAPE,
            "%arg0",
            [('"b"', "%arg0 <- %0", "its shards along this factor are not contiguous")],
        ),
        ("[{?}]", "[{?}]", ADD, "%0", []),
    ],
    ids=["closed", "replicated", "another axis", "barrier", "not contiguous", "no neighbor"],
)
def test_missed_axes_of_a_replicated_value(
    first: str, second: str, body: str, name: str, missed: list[tuple[str, str, str]]
) -> None:
    explanation = explained(of_two(first, second, body), name)
    assert explanation.chains == ()
    assert [(str(each.axis), each.hop.edge) for each in explanation.missed] == [(axis, way) for axis, way, _ in missed]
    for each, (_, _, reason) in zip(explanation.missed, missed, strict=True):
        assert reason in each.reason
    assert ("and none shards a neighbor" in str(explanation)) == (not missed)


def test_an_axis_that_a_later_pass_removed_is_missed() -> None:
    module = propagated(
        MESH
        + """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.tanh %x : tensor<3xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<3xf32>
  return %1 : tensor<3xf32>
}"""
    )
    (missed,) = explained(module, "%arg0").missed
    assert missed.reason.startswith("it arrived, and a later pass removed it")


def test_the_text_of_a_value_without_a_sharding() -> None:
    module = propagated("func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }")
    assert str(explained(module, "%arg0")) == (
        "%arg0 has no sharding\n  no axis shards it, and none shards a neighbor along a factor of it"
    )
    closed = of_two('[{"a"}]', "[{}]", ADD)
    assert str(explained(closed, "%arg1")).splitlines() == [
        "%arg1 has the sharding <@mesh, [{}]>",
        "  no axis shards it",
        "",
        '  dimension 0, missing axis "a"',
        "    %arg1 <- %arg0  stablehlo.add, factor i=8  (program.mlir:3:6)",
        "    %arg1 is closed along this factor",
    ]


def test_arguments_are_named_by_their_path() -> None:
    def step(params: dict[str, list[jax.Array]], x: jax.Array) -> jax.Array:
        return x @ params["blocks"][0]

    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    w = jax.ShapeDtypeStruct((4, 8), jnp.float32, sharding=NamedSharding(mesh, P(None, "x")))
    x = jax.ShapeDtypeStruct((2, 4), jnp.float32)
    explanation = sdy.explain(step, "params['blocks'][0]", {"blocks": [w]}, x)
    assert "given to argument 0 (params['blocks'][0])" in str(explanation)


LINES = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>} loc("x"),
    %w: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>} loc("p['w']"))
    -> (tensor<8x8xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32> loc("/home/me/step.py":5:9)
  %1 = stablehlo.tanh %0 : tensor<8x8xf32> loc("/home/me/step.py":5:3)
  %2 = stablehlo.negate %1 : tensor<8x8xf32> loc("/home/me/layers.py":7:3)
  %3 = stablehlo.constant dense<0.0> : tensor<f32> loc("/home/me/step.py":8:3)
  %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32> loc("/home/me/step.py":9:3)
  return %2, %4 : tensor<8x8xf32>, tensor<f32>
}"""


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("step.py:5", ["%0", "%arg0", "%arg1"]),
        ("/home/me/step.py:5", ["%0", "%arg0", "%arg1"]),
        ("5", ["%0", "%arg0", "%arg1"]),
        ("step.py:5:3", ["%1"]),
        ("5:3", ["%1"]),
        ("7", ["%2"]),
        ("step.py:8", ["%3"]),
        ("9", ["%2"]),
    ],
)
def test_a_source_line_stands_for_the_tensors_that_it_computes_and_uses(place: str, values: list[str]) -> None:
    first = explained(propagated(LINES), place)
    assert [first.value, *(each.value for each in first.others)] == values


def test_the_text_of_a_source_line_names_arguments_and_operations() -> None:
    text = str(explained(propagated(LINES), "step.py:5"))
    assert text.startswith(
        '%0 (stablehlo.dot_general at /home/me/step.py:5:9) has the sharding <@mesh, [{"a"}, {"b"}]>'
    )
    assert "%arg1 (p['w']) has the sharding" in text


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("step.py:6", "no tensor is computed at step.py:6: the nearest lines with operations are 5, 8, 9"),
        ("step.py:5:4", "operations of this line are at column 3, 9"),
        ("other.py:5", "no tensor is computed at other.py:5: its operations are in /home/me/step.py, /home/me/layers"),
        ("4", "no tensor is computed at line 4: the nearest lines with operations are 5, 7, 8, 9"),
        ("p['v']", r"did you mean 'p\['w'\]'"),
    ],
)
def test_errors_for_unknown_lines_and_arguments_say_what_there_is(place: str, problem: str) -> None:
    with pytest.raises(sdy.DiagnosticError, match=problem):
        explained(propagated(LINES), place)


def test_the_rows_of_an_account_are_explained_by_their_lines() -> None:
    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return x @ w

    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    w = jax.ShapeDtypeStruct((4, 8), jnp.float32, sharding=NamedSharding(mesh, P("x")))
    x = jax.ShapeDtypeStruct((2, 4), jnp.float32)
    (row,) = sdy.account(step, w, x).received
    explanations = sdy.explain(step, str(row.where), w, x)
    assert any("given to argument 0 (w)" in str(each) for each in explanations.others)
