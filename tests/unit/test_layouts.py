"""Choice between jax.jit's layout and one that moves fewer bytes."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jax.sharding import PartitionSpec as P

import sdy
from corpus import PROGRAMS
from corpus.training import transformer_step
from partitioned_programs import LINE, Argument, Program, X, ints, program
from sdy.diagnostics import Diagnostic, DiagnosticError, Severity, capture
from sdy.ir.walking import operations
from sdy.passes.common.inline import inline_calls
from sdy.passes.driver import partition, propagate, run_passes
from sdy.passes.importing.rewrite_as_hlo import RewriteAsHloPass
from sdy.passes.jax.program.sharded_program import ShardedProgram
from sdy.passes.layouts import AS_IN_HLO, AS_WRITTEN, PropagatedLayout, cheapest, is_propagated, propagated_layouts
from sdy.tools import sdy_run


def embed(table: jax.Array, tokens: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(table[tokens] @ w)


def scanned(x: jax.Array, weights: jax.Array) -> jax.Array:
    """The scanned values have another sharding in the loop than before it."""
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]


def sliced(x: jax.Array) -> jax.Array:
    """Return rows from an index that is computed from constants."""
    return jax.lax.dynamic_slice_in_dim(x, jnp.int32(3) * 2 + 2, 8)


@jax.grad
def of_columns(x: jax.Array) -> jax.Array:
    """Return the gradient of two columns, whose dimension of size 1 is removed before the product and added after."""
    return (x[:, 0] * x[:, -1]).sum()


EMBED = program(embed, Argument((128, 32), (X,)), ints((64, 32), X), Argument((32, 64), (None, X)), mesh=LINE)
FULLY_SHARDED = program(
    transformer_step,
    Argument((32, 16), (X,)),
    Argument((3, 16, 4, 4), (None, X)),
    Argument((4, 4, 16), (None, None, X)),
    Argument((16, 64), (X,)),
    Argument((64, 16), (X,)),
    ints((8, 6), X),
    ints((8, 6), X),
    mesh=LINE,
)
SCANNED = program(scanned, Argument((16, 32), (X,)), Argument((3, 32, 32), (None, None, X)), mesh=LINE)
SLICED = program(sliced, Argument((64, 4), (X,)), mesh=LINE)
OF_COLUMNS = program(of_columns, Argument((8, 24), (None, X)), mesh=LINE)
LIKE_JAX = {
    "embedding": EMBED,
    "fully sharded": FULLY_SHARDED,
    "scan": SCANNED,
    "slice at a known index": SLICED,
    "gradient of columns": OF_COLUMNS,
    "sequence parallel": PROGRAMS["training: transformer block, sequence split"],
    "mixture of experts": PROGRAMS["training: mixture of experts"],
}

MODULE = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<{rows}x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}})
    -> (tensor<{rows}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}]>}}) {{
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.{reducer} across dimensions = [1]
    : (tensor<{rows}x16xf32>, tensor<f32>) -> tensor<{rows}xf32>
  return %1 : tensor<{rows}xf32>
}}
"""


def layout(rows: int, form: str = "", reported: tuple[Diagnostic, ...] = ()) -> PropagatedLayout:
    """Return a layout with which a device receives 6 bytes and needs 24 bytes of memory for each row."""
    module = sdy.parse(MODULE.format(rows=rows, reducer="add"))
    propagate(module)
    return PropagatedLayout(form or str(rows), module, reported)


def specs(shardings: Any, ranks: list[int]) -> list[Any]:
    """Return the axes of each dimension as tuples."""
    return [
        [(axes,) if isinstance(axes, str) else (axes or ()) for axes in (*sharding.spec, *[None] * rank)][:rank]
        for sharding, rank in zip(shardings, ranks, strict=True)
    ]


@pytest.mark.parametrize("name", LIKE_JAX)
def test_the_hlo_form_has_the_layout_of_jax(name: str):
    lowered = LIKE_JAX[name].lowered()
    ranks = [len(result.shape) for result in jax.tree.leaves(lowered.out_info)]
    module = sdy.from_jax(lowered)
    inline_calls(module)
    run_passes(module, [RewriteAsHloPass()])
    propagate(module)
    with capture():
        ours = ShardedProgram.of(module).out_shardings
    theirs = jax.tree.leaves(lowered.compile().output_shardings)
    assert specs(ours, ranks) == specs(theirs, ranks)


@pytest.mark.parametrize("name", LIKE_JAX)
def test_the_hlo_form_computes_the_same(name: str):
    module = LIKE_JAX[name].module()
    random: Any = np.random.default_rng(0)
    arrays = [
        random.standard_normal(argument.shape, np.float32)
        if argument.dtype == "float32"
        else random.integers(0, 8, argument.shape, np.int32)
        for argument in LIKE_JAX[name].arguments
    ]
    expected = sdy.interpret(module, *arrays)
    inline_calls(module)
    before = list(operations(module))
    run_passes(module, [RewriteAsHloPass()], verify_each=True)
    assert list(operations(module)) != before
    for result, wanted in zip(sdy.interpret(module, *arrays), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [EMBED, FULLY_SHARDED, SLICED, OF_COLUMNS], ids=lambda each: each.function.__name__)
def test_the_layout_that_moves_fewer_bytes_is_selected(program: Program):
    layouts = propagated_layouts(program.module())
    assert [layout.form for layout in layouts] == [AS_IN_HLO, AS_WRITTEN]
    choice = cheapest(layouts).choice
    assert choice is not None
    assert choice.best.form == AS_IN_HLO
    assert choice.best.bytes_received < choice.others[0].bytes_received


def test_a_program_that_has_one_layout_is_not_compared():
    double = program(lambda x: x[:, None] * 2, Argument((16,), (X,)), mesh=LINE)
    (only,) = propagated_layouts(double.module())
    assert only.form == AS_WRITTEN
    assert cheapest([only]).choice is None


def test_jit_selects_the_layout_of_jax_by_default():
    mesh = EMBED.jax_mesh()
    arguments = [argument.on(mesh) for argument in EMBED.arguments]
    (by_default,) = sdy.jit(embed).lower(*arguments).program.out_shardings
    (as_written,) = sdy.jit(embed, compare_layouts=False).lower(*arguments).program.out_shardings
    assert by_default.spec == P(X, None, None)
    assert as_written.spec == P(None, None, X)


def test_compile_propagates_a_program_of_jax():
    module = sdy.from_jax(EMBED.lowered())
    (by_default,) = sdy.compile(module).out_shardings
    (as_written,) = sdy.compile(module, compare_layouts=False).out_shardings
    assert by_default.spec == P(X, None, None)
    assert as_written.spec == P(None, None, X)


def test_a_propagated_module_keeps_its_layout():
    module = EMBED.module()
    sdy.propagate(module)
    assert sdy.compile(module).out_shardings[0].spec == P(None, None, X)
    read_back = sdy.parse(sdy.format(module))
    assert sdy.compile(read_back).out_shardings[0].spec == P(None, None, X)


def test_both_layouts_compute_the_same():
    mesh = EMBED.jax_mesh()
    random: Any = np.random.default_rng(0)
    table, w = (random.standard_normal(shape, np.float32) for shape in ((128, 32), (32, 64)))
    tokens = random.integers(0, 128, (64, 32), np.int32)
    axes = [argument.axes for argument in EMBED.arguments]
    arrays = [
        jax.device_put(array, NamedSharding(mesh, PartitionSpec(*split)))
        for array, split in zip((table, tokens, w), axes, strict=True)
    ]
    expected = embed(table, tokens, w)
    for compare in (True, False):
        np.testing.assert_allclose(sdy.jit(embed, compare_layouts=compare)(*arrays), expected, rtol=1e-4, atol=1e-5)


def test_explain_prints_the_bytes_of_the_rejected_layout():
    mesh = EMBED.jax_mesh()
    module = sdy.jit(embed).lower(*(argument.on(mesh) for argument in EMBED.arguments)).module
    told = str(sdy.explain(module, "%arg0"))
    choice = sdy.explain(module, "%arg0").choice
    assert choice is not None
    cheap, dear = (f"{way.bytes_received:,.0f}" for way in (choice.best, *choice.others))
    told_at_end = f"propagated as in XLA's HLO: a device receives {cheap} bytes; as written it would receive {dear}"
    assert told.endswith(told_at_end)


def test_explain_prints_no_layouts_if_there_is_only_one():
    module = EMBED.module()
    sdy.propagate(module)
    assert "receive" not in str(sdy.explain(module, "%arg0"))


def test_sdy_run_prints_the_selected_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "embed.mlir"
    path.write_text(EMBED.lowered().as_text())
    assert sdy_run.main([str(path)]) == 0
    assert "layout as in XLA's HLO: a device receives" in " ".join(capsys.readouterr().out.split())
    assert sdy_run.main([str(path), "--no-compare-layouts"]) == 0
    assert "layout" not in capsys.readouterr().out


PARTLY_SHARDED = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<64x16xf32> {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<64x16xf32>
  %1 = stablehlo.cosine %0 : tensor<64x16xf32>
  return %1 : tensor<64x16xf32>
}"""


def test_a_module_with_a_few_shardings_is_not_propagated() -> None:
    module = sdy.parse(PARTLY_SHARDED)
    assert not is_propagated(module)
    assert sdy.account(module).bytes_received == 0
    propagate(module)
    assert is_propagated(module)
    assert is_propagated(sdy.parse(sdy.format(module)))


def test_a_policy_is_called_once():
    asked: list[int] = []
    propagated_layouts(EMBED.module(), lambda operations: asked.append(len(operations)))
    assert len(asked) == 1


def test_a_layout_with_much_more_memory_is_not_selected():
    assert taken(layout(8), layout(16)) == "8"
    assert taken(layout(16), layout(8)) == "8"
    big_but_silent = sdy.parse(MODULE.format(rows=4096, reducer="add").replace('{"x"}', "{}"))
    propagate(big_but_silent)
    assert taken(layout(8), PropagatedLayout("big", big_but_silent)) == "8"
    assert taken(PropagatedLayout("big", big_but_silent), layout(8)) == "big"


def test_the_first_of_equal_layouts_is_selected():
    assert taken(layout(8, "first"), layout(8, "second")) == "first"


def taken(*layouts: PropagatedLayout) -> str:
    choice = cheapest(layouts).choice
    assert choice is not None
    return choice.best.form


def test_a_layout_that_cannot_be_partitioned_is_not_selected():
    partitioned_already = layout(8).module
    partition(partitioned_already)
    refused = PropagatedLayout("refused", partitioned_already)
    assert taken(refused, layout(8)) == "8"
    with pytest.raises(DiagnosticError, match="partitioned already"):
        cheapest([refused, refused])


def test_only_diagnostics_of_the_selected_layout_are_reported():
    def warning(text: str) -> Diagnostic:
        return Diagnostic(Severity.WARNING, None, text)

    with capture() as reported:
        cheapest([layout(8, "first", (warning("of the first"),)), layout(8, "second", (warning("of the second"),))])
    assert [diagnostic.message for diagnostic in reported] == ["of the first"]


BROADCAST = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %arg1: tensor<8x4x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}]>}) -> tensor<8x4x1xf32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
  %1 = stablehlo.negate %0 : tensor<8x4x1xf32>
  %2 = stablehlo.add %1, %arg1 : tensor<8x4x1xf32>
  return %2 : tensor<8x4x1xf32>
}
"""


@pytest.mark.parametrize(("form", "axis"), [([], "y"), ([RewriteAsHloPass()], "x")], ids=[AS_WRITTEN, AS_IN_HLO])
def test_an_axis_wins_through_a_reshape_that_loses_through_a_broadcast(form: list[RewriteAsHloPass], axis: str):
    module = sdy.parse(BROADCAST)
    run_passes(module, form)
    sdy.propagate(module)
    (negation,) = (op for op in operations(module) if op.name == "stablehlo.negate")
    assert sdy.get_sharding(negation.results[0]) == sdy.Sharding.of(axis, None, None)
