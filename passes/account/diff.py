"""`sdy.diff`: compare the shardings, the collectives and the costs of two programs."""

from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.account.difference import Difference
from sdy.passes.account.golden import golden_summary
from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.partitioned_program import Program, partitioned_program
from sdy.passes.account.summary import Summary
from sdy.passes.driver import read


def diff(before: Program, after: Program, *args: Any, **kwargs: Any) -> Difference:
    """Compare the shardings, the collectives, the bytes received and the peak memory of two programs.

        print(sdy.diff(step, other_step, params, batch))

    JAX's names of operations begin with that of the function, as `jit(step)/dot_general`: if the functions have
    different names, the first replaces the second.

    Args:
        before: A program that `sdy.account` takes, or a golden layout, such as `"layouts/step.json"`.
        after: Another one.
        *args: The positional arguments of both functions, or of the one that is a function.
        **kwargs: Their keyword arguments.

    Returns:
        The difference; false if the programs are equal.

    Raises:
        TypeError: Arguments are given, and neither program is a function, or a function does not take a keyword.
        DiagnosticError: A file cannot be read, or a program cannot be partitioned.
    """
    for program in (before, after):
        if _is_function(program):
            check_keywords(diff, program, kwargs)
    if (args or kwargs) and not (_is_function(before) or _is_function(after)):
        raise TypeError("both programs already have their arguments: pass none")
    summaries = [
        summary_of(program, *args, **kwargs) if _is_function(program) else summary_of(program)
        for program in (before, after)
    ]
    first, second = summaries
    return Difference(first, second.with_root(first.root))


def summary_of(program: Program, *args: Any, **kwargs: Any) -> Summary:
    """Summarize a program that `sdy.account` takes, or read a golden layout.

    Raises:
        DiagnosticError: A file cannot be read, or the program cannot be partitioned.
    """
    if isinstance(program, str | Path) and str(program).endswith(".json"):
        return golden_summary(read(str(program)))
    return Summary.of(partitioned_program(program, *args, **kwargs))


def _is_function(program: Program) -> bool:
    """Return whether a program takes arguments: it is neither a module nor a file, and has not been traced."""
    if isinstance(program, ModuleOp | str | Path):
        return False
    from sdy.passes.jax.bindings.from_jax import has_arguments

    return not has_arguments(program)
