"""`under="jax.jit"`: a program as XLA's partitioner compiles it, beside sdy's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.diagnostics import Location
from sdy.passes.jax.hlo_places import HloPlaces
from sdy.passes.jax.hlo_received import bytes_received
from sdy.tools import sdy_lint, sdy_report, sdy_run

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def described(shape: tuple[int, ...], *axes: str | None) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(MESH, P(*axes)))


def product(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def loop(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), None), x, length=3)[0]


def gradient(x: jax.Array, w: jax.Array) -> jax.Array:
    return w - jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)


def as_it_is(step: Callable[..., Any]) -> Callable[..., Any]:
    return step


ARGUMENTS = described((64, 32), "data", "model"), described((32, 32), "model")


@pytest.mark.parametrize("step", [product, loop, gradient])
@pytest.mark.parametrize("of", [as_it_is, jax.jit, sdy.jit])
def test_the_costs_are_those_of_jax_jit(step: Callable[..., Any], of: Callable[..., Any]) -> None:
    account = sdy.account(of(step), *ARGUMENTS, under="jax.jit")
    compiled = jax.jit(step).lower(*ARGUMENTS).compile()
    assert account.under is not None
    assert account.under.bytes_received == bytes_received(compiled.as_text() or "", 8)
    assert sum(each.bytes for each in account.under.received) == account.under.bytes_received
    assert {each.where and each.where.filename for each in account.under.received} == {__file__}
    assert account.bytes_received == sdy.account(of(step), *ARGUMENTS).bytes_received


def test_both_are_shown() -> None:
    lines = str(sdy.account(loop, *ARGUMENTS, under="jax.jit")).split("\n")
    assert "  partitioned   by sdy, and beside it by XLA as under jax.jit" in lines
    (received,) = (line.split() for line in lines if line.startswith("  received"))
    account = sdy.account(loop, *ARGUMENTS, under="jax.jit")
    assert account.under is not None
    assert received[1] == f"{account.bytes_received:,.0f}"
    assert received[3] == f"{account.under.bytes_received:,.0f}"
    assert any(line.startswith("  under jax.jit   times   bytes received   at") for line in lines)


def test_one_partitioner_is_named_by_default() -> None:
    line = "partitioned by sdy, not by XLA as under jax.jit"
    assert line in str(sdy.account(product, *ARGUMENTS)).replace("partitioned   ", "partitioned ")
    assert str(sdy.lint(product, *ARGUMENTS)).endswith(line)
    assert sdy.report(product, *ARGUMENTS).data["partitioned"] == f"P{line[1:]}."


def test_lint_and_report_show_both() -> None:
    found = str(sdy.lint(product, *ARGUMENTS, under="jax.jit"))
    assert "by sdy   under jax.jit" in found
    page = sdy.report(product, *ARGUMENTS, under="jax.jit").data["under"]
    assert page["summary"].startswith("Under jax.jit, each device receives ")
    assert page["collectives"]


def test_programs_of_a_block() -> None:
    x, w = (jax.device_put(jnp.ones(each.shape), each.sharding) for each in ARGUMENTS)
    with sdy.compiler() as c:
        jax.jit(product)(x, w)
    account = sdy.account(c.programs[-1], under="jax.jit")
    other = sdy.account(product, x, w, under="jax.jit").under
    assert account.under is not None
    assert other is not None
    assert account.under.bytes_received == other.bytes_received


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(jax.jit(product).lower(*ARGUMENTS).as_text(debug_info=True))
    for tool in (sdy_lint, sdy_run):
        assert tool.main(["step.mlir", "--under", "jax.jit"]) == 0
        assert "under jax.jit   times" in capsys.readouterr().out
    assert sdy_report.main(["step.mlir", "--under", "jax.jit"]) == 0
    assert "Under jax.jit, each device receives" in Path("step.html").read_text()


def test_other_partitioners_and_too_few_devices_are_errors() -> None:
    with pytest.raises(ValueError, match=r"under must be 'jax\.jit', not 'xla'"):
        sdy.account(product, *ARGUMENTS, under="xla")
    program = """
    sdy.mesh @mesh = <["x"=4096]>
    func.func @main(%0: tensor<4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4096xf32> {
      return %0 : tensor<4096xf32>
    }"""
    with pytest.raises(sdy.DiagnosticError, match="4096 devices, but there are only 8: set JAX_NUM_CPU_DEVICES=4096"):
        sdy.account(sdy.parse(program), under="jax.jit")


def test_older_metadata_has_the_line() -> None:
    instruction = 'metadata={op_name="jit(f)/dot" source_file="train.py" source_line=5}'
    assert HloPlaces("").of(instruction) == Location("train.py", 5, 1)
    assert HloPlaces("").of("all-reduce(%x)") is None
