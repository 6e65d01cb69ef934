"""`sdy-diff` and golden files: differences of two programs."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.passes.account.difference import Change, Difference
from sdy.passes.account.golden import golden_summary, golden_text
from sdy.passes.account.partitioned_program import partitioned_program
from sdy.passes.account.summary import Summary
from sdy.passes.driver import Source
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.tools import sdy_diff

BY_COLUMNS, BY_ROWS = '[{}, {"x"}]', '[{"x"}, {}]'


def program(of_w: str, layers: int = 3) -> str:
    """Return a chain of products with parameters sharded by `of_w`; jax names each `layer`."""
    lines = [
        f"%{n + 1} = stablehlo.dot %{n}, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> "
        f'loc("jit(step)/layer/dot_general"("model.py":{10 + n}:3))'
        for n in range(layers)
    ]
    return f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%0: tensor<8x64xf32> loc("batch"),
                %w: tensor<64x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {of_w}>}} loc("params['w']"))
    -> tensor<8x64xf32> {{
  {chr(10).join(lines)}
  return %{layers} : tensor<8x64xf32>
}}
"""


def summary(text: str) -> Summary:
    return Summary.of(partitioned_program(sdy.parse(text)))


EMPTY = Summary({}, {}, {}, {}, {}, 0, 0)


def test_a_program_differs_from_itself_in_nothing() -> None:
    difference = Difference(summary(program(BY_ROWS)), summary(program(BY_ROWS)))
    assert not difference
    assert str(difference) == "no difference"


def test_equal_values_are_one_entry() -> None:
    found = summary(program(BY_COLUMNS))
    assert found.values == {"jit(step)/layer/dot_general tensor<8x64xf32>": "3 of [{}, {x}]"}
    assert found.arguments["argument 1 (params['w']) tensor<64x64xf32>"] == "[{}, {x}]"
    (entry,) = found.collectives
    assert entry == "all-gather over x at jit(step)/layer/dot_general"
    assert str(found.lines[entry]) == "model.py:10:3"


def test_costs_are_what_the_passes_predict() -> None:
    layout = partitioned_program(sdy.parse(program(BY_COLUMNS)))
    found = Summary.of(layout)
    assert found.received == bytes_received(layout.local) > 0
    assert found.memory == peak_bytes(layout.local)


def test_each_change_is_told_with_its_line() -> None:
    before, after = summary(program(BY_COLUMNS)), summary(program(BY_ROWS))
    difference = Difference(before, after)
    assert (
        Change("argument 1 (params['w']) tensor<64x64xf32>", "[{}, {x}]", "[{x}, {}]")
        in difference.changes["arguments"]
    )
    came = [change for change in difference.changes["collectives"] if change.before is None]
    went = [change for change in difference.changes["collectives"] if change.after is None]
    assert [change.entry.split()[0] for change in went] == ["all-gather"]
    assert {change.entry.split()[0] for change in came} == {"all-reduce", "reduce-scatter"}
    assert "layer/dot_general  at model.py:" in str(difference)
    assert f"{before.received:,} bytes before, {after.received:,} after" in str(difference)


def test_of_many_changes_the_others_are_counted() -> None:
    def many(axes: str) -> str:
        names = [f"%a{n}: tensor<{8 * n}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{axes}]>}}" for n in range(1, 31)]
        return f'sdy.mesh @mesh = <["x"=4]>\nfunc.func @main({", ".join(names)}) {{\n  return\n}}'

    difference = Difference(summary(many("{}")), summary(many('{"x"}')))
    assert "    and 10 more" in str(difference)
    assert " more" not in difference.shown(most=None)


def test_a_summary_is_kept_and_found_again() -> None:
    found = summary(program(BY_ROWS))
    assert golden_summary(Source(golden_text(found), "golden.json")) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "golden.json:1:2: error: invalid JSON"),
        ("[]", "golden.json:1:1: error: not a golden layout"),
        ('{"meshes": {}}', "golden.json:1:1: error: not a golden layout"),
        (
            golden_text(EMPTY).replace('"meshes": {}', '"meshes": 1'),
            "golden.json:1:1: error: not a golden layout: 'meshes' has the wrong type",
        ),
    ],
)
def test_invalid_golden_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(sdy.DiagnosticError) as refused:
        golden_summary(Source(text, "golden.json"))
    assert str(refused.value).startswith(problem)


def test_a_test_holds_a_function_against_its_golden_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, described = tmp_path / "layouts" / "step.json", jax.ShapeDtypeStruct((16, 16), "float32")

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    def split_by(spec: P) -> Callable[..., jax.Array]:
        devices = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
        return sdy.jit(step, mesh=devices, in_shardings=(spec, P()))

    with pytest.raises(sdy.ChangedLayoutError, match=r"no golden layout at .*: run with SDY_GOLDEN=update"):
        sdy.check_golden(path, split_by(P("x")), described, described)
    with monkeypatch.context() as environment:
        environment.setenv("SDY_GOLDEN", "update")
        sdy.check_golden(path, split_by(P("x")), described, described)
    sdy.check_golden(path, split_by(P("x")), described, described)
    with pytest.raises(sdy.ChangedLayoutError) as changed:
        sdy.check_golden(path, split_by(P(None, "x")), described, described)
    assert "- [{x}, {}]\n      + [{}, {x}]" in str(changed.value)


def test_the_tool_compares_programs_and_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, columns, kept = (str(tmp_path / name) for name in ("rows.mlir", "columns.mlir", "kept.json"))
    Path(rows).write_text(program(BY_ROWS))
    Path(columns).write_text(program(BY_COLUMNS))
    assert sdy_diff.main([rows, "--golden", kept]) == 0
    assert sdy_diff.main([kept, rows]) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert sdy_diff.main([kept, columns, "--all"]) == 1
    assert "params['w']" in capsys.readouterr().out
    assert sdy_diff.main([kept, str(tmp_path / "nothing.mlir")]) == 2
    assert "cannot read the file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["a.mlir"], ["a.mlir", "b.mlir", "--golden", "c.json"]])
def test_the_tool_takes_two_programs_or_keeps_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sdy_diff.main(words)
    assert "give either a second program or --golden" in capsys.readouterr().err


def test_functions_are_compared_for_the_same_arguments(tmp_path: Path) -> None:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    def gathered(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(mesh, P()))

    x = jax.ShapeDtypeStruct((8, 64), jnp.float32, sharding=NamedSharding(mesh, P("x")))
    w = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    assert not sdy.diff(step, jax.jit(step).lower(x, w), x, w)
    changes = sdy.diff(step, gathered, x, w).changes
    assert {change.entry for kind in changes.values() for change in kind} == {
        "result 0 tensor<8x64xf32>",
        "all-gather over x at jit(step)/sharding_constraint",
        "jit(step)/sharding_constraint tensor<8x64xf32>",
        "jit(step)/tanh tensor<8x64xf32>",
    }
    kept = tmp_path / "step.json"
    kept.write_text(golden_text(Summary.of(partitioned_program(step, x, w))))
    assert not sdy.diff(kept, step, x, w)
    with pytest.raises(TypeError, match="pass none"):
        sdy.diff(str(kept), jax.jit(step).lower(x, w), x, w)
