"""Programs with one planted mistake each, which lint finds once, by its line or by the path of an argument."""

from lint_programs.mistake import Mistake
from lint_programs.mistakes import arguments, batches, constraints, decoding, loops, manual, numerics, parameters, steps

MISTAKES: dict[str, Mistake] = {
    name: mistake
    for module in (constraints, manual, parameters, batches, loops, decoding, arguments, numerics, steps)
    for name, mistake in module.MISTAKES.items()
}
"""The programs by name."""
