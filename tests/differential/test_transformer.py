"""End-to-end test on a real training step: examples/transformer.py."""

from pathlib import Path

import pytest

import forked_commands
import sdy
from oracle import assert_same, oracle

EXAMPLES = Path(__file__).parents[2] / "examples"


def lowered(layers: int) -> str:
    return forked_commands.run([EXAMPLES / "transformer.py", "--layers", str(layers)]).stdout


def test_checked_in_text_has_the_signature_of_the_script() -> None:
    """Another version of JAX may lower it to other operations, with the same arguments and results."""
    checked_in, fresh = (sdy.parse(text) for text in ((EXAMPLES / "transformer.mlir").read_text(), lowered(2)))
    main = [next(op for op in module.body.ops if op.name == "func.func") for module in (checked_in, fresh)]
    assert main[0].properties["function_type"] == main[1].properties["function_type"]


@pytest.mark.parametrize("layers", [2, 12])
def test_every_sharding_is_the_oracles(layers: int) -> None:
    text = (EXAMPLES / "transformer.mlir").read_text() if layers == 2 else lowered(layers)
    module = sdy.parse(text)
    sdy.propagate(module)
    assert_same(sdy.format(module), oracle(text, "sdy-propagation-pipeline"))


@pytest.mark.parametrize("arguments", [["--layers", "0"], ["--layers", "many"]])
def test_a_wrong_number_of_layers_is_refused(arguments: list[str]) -> None:
    result = forked_commands.run([EXAMPLES / "transformer.py", *arguments])
    assert result.returncode == 2
    assert "--layers" in result.stderr
    assert "Traceback" not in result.stderr
