"""Lint finds each planted mistake once, with its cause and a fix that helps, and nothing in good programs."""

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
