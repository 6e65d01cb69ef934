"""Costs before and after a fix are of one form of a program: an edit that changes nothing leaves them equal."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import sdy
from lint_programs.good import PROGRAMS as GOOD
from lint_programs.mistake import EIGHT, descend
from lint_programs.mistakes import MISTAKES
from lint_programs.planted import Written, tensor
from samples import sample
from sdy.passes.account.lint import linter, written
from sdy.passes.account.lint.edits import Cure
from sdy.passes.account.lint.fix_choice import ChosenFix, Least, best_cure, costs_before, is_better
from sdy.passes.account.lint.matches import Match
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.thresholds import FixThresholds
from sdy.passes.account.lint.written import Costs, LeastCosts, Trials, WrittenProgram

ROWS = P("data")


def loss(params: Any, x: jax.Array) -> jax.Array:
    """Mask, activation and the two picked targets are nested functions, whose constants are merged once inlined."""
    scores = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), x @ x.mT, -1e9)
    h = jax.nn.silu(jax.nn.softmax(scores, -1) @ x @ params["up"]) @ params["down"]
    logits = jax.nn.log_softmax(h @ params["head"], -1)
    first, second = (jnp.take_along_axis(logits, jnp.full((16, 256, 1), target), -1) for target in (1, 2))
    return jax.lax.with_sharding_constraint(first + second, P(None, "data")).mean()


def deep(params: Any, x: jax.Array) -> jax.Array:
    """Within a limit of the memory, devices compute some of the layers again."""
    for w in params:
        x = jnp.tanh(jnp.sin(x @ w))
    return x.mean()


def embedded(table: jax.Array, tokens: jax.Array, w: jax.Array) -> jax.Array:
    """Propagated in XLA's HLO form, devices receive fewer bytes."""
    return jnp.tanh(table[tokens] @ w)


def beside(table: jax.Array, tokens: jax.Array, w: jax.Array, x: jax.Array, up: jax.Array, down: jax.Array) -> Any:
    """Beside that, a constraint is one of columns, though that of rows is kept."""
    y = jax.lax.with_sharding_constraint(jnp.sin(x @ up), P(None, "data"))
    return embedded(table, tokens, w), jax.lax.with_sharding_constraint(y @ down, ROWS)


PARAMS = {"up": tensor(64, 4096, split=P()), "down": tensor(4096, 64, split=P()), "head": tensor(64, 8192, split=P())}
NESTED = Written(descend(loss), (PARAMS, tensor(16, 256, 64, split=ROWS)), mesh=EIGHT)
SQUARES = [tensor(512, 512, split=P("data")) for _ in range(4)]
DEEP = Written(descend(deep), (SQUARES, tensor(8192, 512, split=ROWS)), mesh=EIGHT)
TABLE, TOKENS = tensor(8192, 2048, split=ROWS), tensor(64, 256, split=ROWS, dtype="int32")
COLUMNS = tensor(2048, 4096, split=P(None, "data"))
EMBEDDED = Written(embedded, (TABLE, TOKENS, COLUMNS), mesh=EIGHT)
UP, DOWN = (tensor(*shape, split=P(None, "data")) for shape in ((1024, 4096), (4096, 1024)))
BESIDE = Written(beside, (TABLE, TOKENS, COLUMNS, tensor(8192, 1024, split=ROWS), UP, DOWN), mesh=EIGHT)


def lint(written: Written, jit: Callable[..., Any]) -> object:
    return sdy.lint(written.lowered_by(jit))


def report(written: Written, jit: Callable[..., Any]) -> object:
    return sdy.report(written.lowered_by(jit))


@pytest.mark.parametrize(
    ("analyse", "written", "jit"),
    [
        pytest.param(lint, NESTED, jax.jit, id="lint of nested functions"),
        pytest.param(report, NESTED, jax.jit, id="report of nested functions, which are called"),
        pytest.param(report, DEEP, partial(sdy.jit, memory="20M"), id="report within a limit of the memory"),
        pytest.param(lint, EMBEDDED, sdy.jit, id="lint of a program in XLA's HLO form"),
        pytest.param(report, EMBEDDED, jax.jit, id="report of a program in XLA's HLO form"),
    ],
)
def test_an_edit_that_changes_nothing_leaves_the_costs_equal(
    analyse: Callable[[Written, Any], object], written: Written, jit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[Costs] = []
    unchanged: list[Costs | None] = []

    def compared(
        program: LintedProgram, candidates: Sequence[Match], trials: Trials, step: Costs, share: float = 1.0
    ) -> ChosenFix | None:
        assert program.written is not None
        before.append(costs_before(program, trials))
        unchanged.append(Trials(1, program.hardware).costs(program.written, Cure(())))
        return best_cure(program, candidates, trials, step, share)

    monkeypatch.setattr(linter, "best_cure", compared)
    analyse(written, jit)
    assert before
    assert before == unchanged


@pytest.mark.parametrize("jit", [jax.jit, sdy.jit])
def test_a_mistake_is_found_where_the_form_of_hlo_is_better(jit: Callable[..., Any]) -> None:
    (finding,) = sdy.lint(BESIDE.lowered_by(jit))
    assert finding.rule == "lost-constraint"
    assert "receives 112 MiB instead of 140 MiB" in finding.compared


SMALL = {"up": tensor(128, 512, split=P(None, "model")), "down": tensor(512, 128, split=P("model"))}


def test_no_layout_is_tried_of_a_program_in_which_none_can_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threshold is 1 MiB, and a device receives and needs less in all."""

    def loss(params: Any, x: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)

    def fail(layouts: object) -> None:
        raise AssertionError(f"a fix is tried: {layouts}")

    monkeypatch.setattr(written, "cheapest", fail)
    assert not sdy.lint(Written(descend(loss), (SMALL, tensor(512, 128, split=ROWS))).lowered())


NO_FIX = {
    "decoding": GOOD["decoding"],
    "matrices of layers": MISTAKES["matrices of layers sharded along the width of the residual"].written,
}


@pytest.mark.parametrize("name", sample(NO_FIX))
def test_no_fix_helps_whose_trial_ends_early(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Trials.costs

    def checked(self: Trials, program: WrittenProgram, cure: Cure, least: LeastCosts | None = None) -> Costs | None:
        after = costs(self, program, cure, least)
        if least and after is None and (full := costs(self, program, cure)):
            assert full.compute >= least.bounds.compute
            assert full.memory >= least.bounds.memory
            assert not least.can_help(full)
        return after

    monkeypatch.setattr(Trials, "costs", checked)
    sdy.lint(NO_FIX[name].lowered())


@pytest.mark.parametrize(
    ("after", "is_fix"),
    [
        pytest.param(Costs(9e9, 20, 1.0, 7.5), False, id="bytes for a fifth of the time"),
        pytest.param(Costs(9e9, 20, 1.0, 4.0), True, id="bytes for half of the time"),
        pytest.param(Costs(2e8, 2**30 - 2**28, 7.0, 9.5), True, id="fewer bytes than memory"),
        pytest.param(Costs(9e8, 2**30 - 2**28, 7.0, 9.5), False, id="more bytes than memory"),
    ],
)
def test_a_fix_adds_bytes_in_proportion_to_what_it_saves(after: Costs, is_fix: bool) -> None:
    before = Costs(1e6, 2**30, 9.0, 10.0)
    least = Least(2.0**20, 2.0**20, 2.0**20, 0.1, FixThresholds())
    assert is_better(before, after, least) == is_fix
