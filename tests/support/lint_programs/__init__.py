"""Typical programs, each with one costly mistake, and corrected.

The line of the mistake ends with the comment `# mistake`, or follows it. Nothing is run, so the sizes are those of real
programs.
"""

from lint_programs import attention, experts, kernels, layers, optimizers, projections, steps, windows
from lint_programs.planted import Planted

PROGRAMS: dict[str, Planted] = {
    name: planted
    for module in (layers, attention, experts, kernels, optimizers, projections, steps, windows)
    for name, planted in module.PROGRAMS.items()
}
"""All programs by mistake."""
