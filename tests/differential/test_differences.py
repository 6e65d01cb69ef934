"""Differences from Shardy listed in docs/differences.md, and how to get the behavior of the C++."""

import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from cxx_versions import lacks
from oracle import OracleError, assert_same, oracle
from sdy.dialect.shardings import func_result_sharding
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline

PIPELINE = "sdy-propagation-pipeline"
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
TENSOR = "tensor<8x8xf32>"
SPLIT = sdy.Sharding.of("x", "y")


def program(body: str, sharding: str = '[{"x"}, {"y"}]') -> str:
    """Return a function of a tensor with this sharding, and of a condition, that returns %0."""
    given = f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"
    return (
        f"{MESH}func.func @main(%a: {TENSOR} {given}, %p: tensor<i1>) -> {TENSOR} {{\n{body}\nreturn %0 : {TENSOR}\n}}"
    )


def after(text: str, pipeline: str) -> ModuleOp:
    module = sdy.parse(text)
    run_passes(module, parse_pipeline(pipeline))
    return module


def result_sharding(module: ModuleOp) -> sdy.Sharding | None:
    return func_result_sharding(main_function(module), 0)


BRANCHES = f"""({{
  %1 = stablehlo.abs %a : {TENSOR}
  stablehlo.return %1 : {TENSOR}
}}, {{
  stablehlo.return %a : {TENSOR}
}})"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"%0 = chlo.tan %a : {TENSOR} -> {TENSOR}", SPLIT),
        (f"%0, %1 = chlo.top_k(%a, k = 8) : {TENSOR} -> ({TENSOR}, tensor<8x8xi32>)", sdy.Sharding.of("x", None)),
        (f'%0 = "stablehlo.if"(%p) {BRANCHES} : (tensor<i1>) -> {TENSOR}', SPLIT),
        (f"%0 = arith.addf %a, %a : {TENSOR}", SPLIT),
        (f"%0 = math.tanh %a : {TENSOR}", SPLIT),
    ],
    ids=["chlo", "top_k", "if", "arith", "math"],
)
def test_operations_that_only_have_a_rule_here(body: str, wanted: sdy.Sharding) -> None:
    assert result_sharding(after(program(body), PIPELINE)) == wanted
    has_rule = "stablehlo.if" in body and not lacks("rule of if")
    assert result_sharding(sdy.parse(oracle(program(body), PIPELINE))) == (wanted if has_rule else None)


def test_composites_are_opened_by_propagate_and_not_by_the_pipeline() -> None:
    body = f'%0 = stablehlo.composite "a.b" %a {{decomposition = @f}} : ({TENSOR}) -> {TENSOR}'
    text = f"{program(body)}\nfunc.func private @f(%a: {TENSOR}) -> {TENSOR} {{ return %a : {TENSOR} }}"
    opened = sdy.parse(text)
    sdy.propagate(opened)
    assert result_sharding(opened) == SPLIT
    theirs = oracle(text, PIPELINE)
    assert result_sharding(sdy.parse(theirs)) is None
    assert_same(sdy.format(after(text, PIPELINE)), theirs)


def test_dropped_partial_sums_are_refused_by_the_pipeline_but_not_by_the_pass() -> None:
    body = f"%0 = stablehlo.abs %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{}}]>]>}} : {TENSOR}"
    text = program(body, '[{}, {}], unreduced={"x"}')
    with pytest.raises(sdy.DiagnosticError, match="dropped unreduced axis 'x'"):
        after(text, PIPELINE)
    if lacks("unreduced axes checked"):
        assert "sdy.all_reduce" in oracle(text, PIPELINE)
    else:
        with pytest.raises(OracleError, match="dropped unreduced axis 'x'"):
            oracle(text, PIPELINE)
    alone = "func.func(sdy-insert-explicit-reshards)"
    assert_same(sdy.format(after(text, alone)), oracle(text, alone))


def test_partial_results_that_are_no_sums_are_read() -> None:
    text = program(f"%0 = sdy.sharding_constraint %a <@mesh, [{{}}, {{}}]> : {TENSOR}", '[{}, {}], unreduced=max{"x"}')
    ours = sdy.format(after(text, PIPELINE))
    assert 'sdy.all_reduce max {"x"}' in ours
    if lacks("reductions"):
        with pytest.raises(OracleError, match=r"expected '\{'"):
            oracle(text, PIPELINE)
    else:
        assert 'sdy.all_reduce max {"x"}' in oracle(text, PIPELINE)


def test_export_pipeline_inlines_meshes_by_default() -> None:
    text, export = program(f"%0 = stablehlo.abs %a : {TENSOR}"), "sdy-export-pipeline"
    assert "sdy.mesh @mesh" not in sdy.format(after(text, export))
    named = sdy.format(after(text, f"{export}{{inline-meshes=false}}"))
    assert "sdy.mesh @mesh" in named
    assert_same(named if lacks("meshes inlined") else sdy.format(after(text, export)), oracle(text, export))


def test_propagate_unifies_meshes_but_the_pipeline_does_not() -> None:
    constraint = f'%0 = sdy.sharding_constraint %1 <@other, [{{"a"}}, {{}}]> : {TENSOR}'
    text = 'sdy.mesh @other = <["a"=4]>\n' + program(f"%1 = stablehlo.abs %a : {TENSOR}\n{constraint}", "[{?}, {?}]")
    unified = sdy.parse(text)
    sdy.propagate(unified)
    assert 'stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>}' in sdy.format(
        unified
    )
    theirs = oracle(text, PIPELINE)
    assert_same(sdy.format(after(text, PIPELINE)), theirs)
    alone = sdy.parse(text)
    sdy.propagate(alone, unify_meshes=False)
    assert_same(sdy.format(alone), theirs)


def test_many_devices_are_listed_here_and_in_hexadecimal_there() -> None:
    groups = ", ".join(f"[{2 * pair}, {2 * pair + 1}]" for pair in range(64))
    text = f"""func.func @main(%a: {TENSOR}) -> tensor<16x8xf32> {{
      %0 = "stablehlo.all_gather"(%a) <{{
        all_gather_dim = 0 : i64, replica_groups = dense<[{groups}]> : tensor<64x2xi64>}}>
        : ({TENSOR}) -> tensor<16x8xf32>
      return %0 : tensor<16x8xf32>
    }}"""
    ours = sdy.format(sdy.parse(text))
    assert f"dense<[{groups}]>" in ours
    theirs = oracle(text, "symbol-dce")
    assert 'dense<"0x' in theirs
    assert sdy.format(sdy.parse(theirs)) == ours


def test_columns_of_a_right_side_are_split() -> None:
    body = f"""%0 = "stablehlo.triangular_solve"(%b, %a) <{{left_side = true, lower = true, unit_diagonal = false,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : ({TENSOR}, {TENSOR}) -> {TENSOR}"""
    text = program(body, '[{}, {"y"}]').replace("%p: tensor<i1>", f"%b: {TENSOR}")
    module = sdy.parse(text)
    sdy.propagate(module)
    sdy.partition(module)
    assert "all_gather" not in sdy.format(module)
    module = after(text, PIPELINE)
    sdy.partition(module)
    assert "all_gather" in sdy.format(module)
