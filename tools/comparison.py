"""What a tool says of the results of a program beside those that it should have, and the exit status that follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import op_error, warn
from sdy.passes.jax.difference import largest_difference, told_difference
from sdy.passes.jax.inputs import NumpyArray, rounded_otherwise
from sdy.passes.jax.result_origin import result_origins
from sdy.passes.jax.rounding import Rounding, first_mismatch
from sdy.tools.terminal import Terminal


@dataclass(frozen=True)
class Comparison:
    """What is told of results, and whether they are right, as far as that was to be found out."""

    text: str
    holds: bool = True

    def show(self, console: Terminal) -> None:
        """Print it, in red where the results are wrong."""
        console.print(self.text, style=None if self.holds else "bold red")


@dataclass(frozen=True)
class Reference:
    """What results are compared with: a program, as a sentence names it, and how its results are computed."""

    name: str
    run: Callable[[Sequence[NumpyArray]], Sequence[NumpyArray]]


def compare(
    module: ModuleOp, inputs: Sequence[NumpyArray], results: Sequence[NumpyArray], reference: Reference
) -> Comparison:
    """Compare what was made of `module` with the `reference`, but for results of which nothing says what they are."""
    origins = result_origins(module)
    for number, drawn in ((number, origin.drawn) for number, origin in enumerate(origins)):
        if drawn is not None:
            warn(drawn, f"'{drawn.name}' op draws other numbers each time, so that result {number} is not compared")
    compared = [number for number, origin in enumerate(origins) if origin.drawn is None]

    def of_reference(given: Sequence[NumpyArray]) -> list[NumpyArray]:
        every = reference.run(given)
        return [every[number] for number in compared]

    found, expected = [results[number] for number in compared], of_reference(inputs)
    text = told_difference(
        largest_difference(found, expected, [f"result {number}" for number in compared]), reference.name
    )
    mismatch = first_mismatch(
        found, expected, Rounding.of(module), lambda relative: of_reference(rounded_otherwise(inputs, relative))
    )
    if mismatch is None:
        return Comparison(text)
    number = compared[mismatch.result]
    wrong = op_error(
        origins[number].operation,
        f"result {number} is wrong: element {list(mismatch.index)} is {mismatch.value}, but {mismatch.wanted} in "
        f"{reference.name} (rounding explains {mismatch.allowed:.2g})",
    )
    return Comparison(f"{text}\n{wrong}", holds=False)
