"""Programs that people would write, each with one mistake that costs, and without it.

The line of the mistake ends with the comment `# mistake`, or has it above. Nothing is run, so that sizes are those of
real programs.
"""

from lint_programs import attention, experts, kernels, layers, optimizers, projections, steps
from lint_programs.planted import Planted

PROGRAMS: dict[str, Planted] = {
    name: planted
    for module in (layers, attention, experts, kernels, optimizers, projections, steps)
    for name, planted in module.PROGRAMS.items()
}
"""All programs, by what is wrong with them."""
