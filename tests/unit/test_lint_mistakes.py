"""Lint finds each planted mistake once, with its cause and a fix that helps, and nothing in good programs."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P
from xdsl.dialects.builtin import ModuleOp, UnknownLoc

import sdy
from lint_programs import PROGRAMS
from lint_programs.good_libraries import LAYOUTS, LIBRARIES
from lint_programs.mistake import descend
from lint_programs.mistakes import MISTAKES
from lint_programs.mistakes.loops import pairs_loss
from lint_programs.planted import Written, tensor
from samples import covering, sample
from sdy.diagnostics import capture


@pytest.mark.parametrize("name", sample(MISTAKES, one_in=15))
def test_mistake_is_found_once_with_its_cause_and_a_fix_that_helps(name: str) -> None:
    mistake = MISTAKES[name]
    with capture():
        findings = sdy.lint(mistake.written.lowered())
    (finding,) = findings
    assert finding.rule == mistake.rule
    assert mistake.cause in str(findings)
    assert bool(finding.compared) == mistake.has_cure
    if finding.compared:
        assert finding.cure
        assert finding.cost


def test_a_fix_moves_a_parameter_together_with_its_optimizer_state() -> None:
    with capture():
        (finding,) = sdy.lint(MISTAKES["two stacks of layers sharded by layer, with momentum"].written.lowered())
    assert "state['down']" in finding.cure
    assert "receives as before" in finding.compared


def test_a_fix_of_a_loop_splits_what_an_iteration_reads() -> None:
    with capture():
        (finding,) = sdy.lint(MISTAKES["gradients of a recurrence over a sharded sequence"].written.lowered())
    assert 'as P("data", None, None)' in finding.cure


def test_layers_over_an_axis_that_the_batch_lacks_are_one_finding() -> None:
    layers = {"up": tensor(8, 512, 2048, split=P("model")), "down": tensor(8, 2048, 512, split=P("model"))}
    written = Written(descend(pairs_loss), (layers, tensor(65536, 512, split=P("data"))))
    with capture():
        (finding,) = sdy.lint(written.lowered())
    assert finding.rule == "batch-not-sharded"
    assert "params['down']" in finding.cure
    (other,) = finding.removes
    assert other.rule == "loop-over-sharded-dimension"


def test_a_random_tensor_is_named_rather_than_its_bits() -> None:
    with capture():
        (finding,) = sdy.lint(MISTAKES["random paths that all devices compute"].written.lowered())
    assert "tensor<1048576x64xf32>" in finding.what
    assert "ui32" not in str(finding)


def test_casts_after_gathers_of_one_function_have_one_fix() -> None:
    with capture():
        (finding,) = sdy.lint(
            MISTAKES["weights of layers that are gathered in float32 and cast"].written.lowered(),
            lint_options=sdy.LintOptions(select=["late-cast"]),
        )
    assert len(finding.edits) == 2


def test_a_fix_that_saves_time_alone_says_how_much() -> None:
    with capture():
        (finding,) = sdy.lint(MISTAKES["vectors of many layers"].written.lowered())
    assert "s longer" in finding.message


def test_a_fix_of_a_loop_splits_the_whole_batch_alike() -> None:
    with capture():
        (finding,) = sdy.lint(MISTAKES["experience that is split over time"].written.lowered())
    assert all(f"['{name}']" in finding.cure for name in ("observations", "rewards", "dones"))


def test_layers_whose_names_end_in_numbers_are_one_finding() -> None:
    def project(params: Any, x: jax.Array) -> jax.Array:
        for name in ("qkv_0", "qkv_1"):
            q, k, v = jnp.split(x @ params[name], 3, -1)
            x = x + q * k * v
        return x

    weight = tensor(1024, 3072, split=P(None, "model"))
    written = Written(project, ({"qkv_0": weight, "qkv_1": weight}, tensor(8192, 1024, split=P("data"))))
    with capture():
        (finding,) = sdy.lint(written.lowered())
    assert finding.rule == "chunks-cross-devices"
    assert finding.like == 1


def test_the_operand_that_a_shard_map_gathers_is_named() -> None:
    def apply(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.shard_map(lambda x, w: x @ w, in_specs=(P("data"), P()), out_specs=P("data"))(x, w)

    arguments = tensor(8192, 1024, split=P("data")), tensor(1024, 4096, split=P(None, "data"))
    with capture():
        (finding,) = sdy.lint(Written(apply, arguments, mesh={"data": 8}).lowered())
    assert finding.rule == "manual-computation-gathers"
    assert "operand 1, argument 1 (w)" in finding.what
    assert 'in_specs: P(None, "data")' in finding.cure


UNNAMED = [name for name, mistake in MISTAKES.items() if not mistake.needs_names]


@covering
@pytest.mark.parametrize("name", sample([*UNNAMED, *PROGRAMS], one_in=60))
@pytest.mark.parametrize("lines", [True, False], ids=["lines of the text", "no lines"])
def test_the_main_finding_does_not_depend_on_source_lines_and_names(name: str, lines: bool) -> None:
    written = MISTAKES[name].written if name in MISTAKES else PROGRAMS[name].mistaken
    with capture():
        lowered = written.lowered()
        module = sdy.parse(lowered.as_text(), "step.mlir")
        if not lines:
            strip_locations(module)
        first, *_ = sdy.lint(lowered)
        stripped, *_ = sdy.lint(module)
    # Without names, a rule may leave the mistake to the last one, and optimizer state is a sibling of the parameters.
    assert stripped.rule in (first.rule, "costly-argument", "siblings-differ")
    # A constraint is written at a line.
    is_at_line = "with_sharding_constraint" in first.cure
    assert bool(stripped.compared) == bool(first.compared) or (is_at_line and not lines)
    assert lines or "unknown" not in str(stripped)


def strip_locations(module: ModuleOp) -> None:
    for op in module.walk():
        op.location = UnknownLoc()
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument.location = UnknownLoc()


@covering
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_is_found_in_well_sharded_programs_of_libraries(library: str, layout: str) -> None:
    step, arguments = LIBRARIES[library](LAYOUTS[layout])
    with capture():
        assert sdy.lint(step, *arguments).summary == "no findings"
