"""Comparison of a program's results with those of a reference program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import op_error, warn
from sdy.passes.jax.program.difference import difference_text, largest_difference
from sdy.passes.jax.program.inputs import NumpyArray, rounded_otherwise
from sdy.passes.jax.program.result_origin import result_origins
from sdy.passes.jax.program.rounding import Rounding, first_mismatch
from sdy.tools.terminal import Terminal


@dataclass(frozen=True)
class Comparison:
    """Outcome of a comparison: a message, and whether the results are correct as far as they were compared."""

    text: str
    holds: bool = True

    def show(self, console: Terminal) -> None:
        """Print the message, in red if the results are wrong."""
        console.print(self.text, style=None if self.holds else "bold red")


@dataclass(frozen=True)
class Reference:
    """Reference program: a noun phrase that names it, and a function that computes its results."""

    name: str
    run: Callable[[Sequence[NumpyArray]], Sequence[NumpyArray]]


def compare(
    module: ModuleOp,
    inputs: Sequence[NumpyArray],
    results: Sequence[NumpyArray],
    reference: Reference,
    rounding: Rounding | None = None,
) -> Comparison:
    """Compare results with those of a reference, except for random results.

    Args:
        module: The program, which determines the tolerance and the locations in messages.
        inputs: The inputs that `results` were computed from.
        results: The results to check.
        reference: The program to compare with.
        rounding: The roundings that explain differences; by default those of `module`.
    """
    origins = result_origins(module)
    for number, drawn in ((number, origin.drawn) for number, origin in enumerate(origins)):
        if drawn is not None:
            warn(drawn, f"'{drawn.name}' op draws different numbers in each run; result {number} is not compared")
    compared = [number for number, origin in enumerate(origins) if origin.drawn is None]

    def run_reference(reference_inputs: Sequence[NumpyArray]) -> list[NumpyArray]:
        every = reference.run(reference_inputs)
        return [every[number] for number in compared]

    actual, expected = [results[number] for number in compared], run_reference(inputs)
    text = difference_text(
        largest_difference(actual, expected, [f"result {number}" for number in compared]), reference.name
    )
    mismatch = first_mismatch(
        actual,
        expected,
        rounding or Rounding.of(module),
        lambda relative: run_reference(rounded_otherwise(inputs, relative)),
    )
    if mismatch is None:
        return Comparison(text)
    number = compared[mismatch.result]
    wrong = op_error(
        origins[number].operation,
        f"result {number} is wrong: element {list(mismatch.index)} is {mismatch.value}, but {mismatch.wanted} in "
        f"{reference.name} (rounding explains a difference of {mismatch.allowed:.2g})",
    )
    return Comparison(f"{text}\n{wrong}", holds=False)
