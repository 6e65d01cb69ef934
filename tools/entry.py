"""Entry points of the commands, as scripts such as `sdy-opt`, and as `python -m sdy opt`, and their exit status.

Interrupts, closed pipes and input errors end a command without a traceback.
"""

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from sdy.extras import MissingPackageError, explain_missing_extra
from sdy.tools.dataclass_code import DataclassCode


def run_command(name: str, words: Sequence[str] | None = None) -> int:
    """Run `sdy-NAME` as the only task of this process, and return its exit status.

    Garbage collection is tuned for short processes: by default, Python would scan the imported modules a hundred times,
    and all objects at exit.
    """
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    atexit.register(DataclassCode.installed().save)
    try:
        with explain_missing_extra(f"sdy-{name}"):
            main: Callable[[Sequence[str] | None], int] = import_module(f"sdy.tools.sdy_{name}").main
            return main(words)
    except MissingPackageError as problem:
        print(problem, file=sys.stderr)
        return REFUSED


sdy_auto = partial(run_command, "auto")
sdy_blocks = partial(run_command, "blocks")
sdy_diff = partial(run_command, "diff")
sdy_interpret = partial(run_command, "interpret")
sdy_lint = partial(run_command, "lint")
sdy_opt = partial(run_command, "opt")
sdy_report = partial(run_command, "report")
sdy_run = partial(run_command, "run")


REFUSED = 2
"""Exit status after an invalid flag, file or program, as in argparse."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


def guarded(command: Callable[[], int]) -> int:
    """Run `command` and return its exit status, or REFUSED if it raises DiagnosticError.

    Diagnostics are printed to standard error as MLIR's tools print them, each warning once per location and cause.
    """
    # Imported after `run_command` has tuned the process, as they import xDSL.
    from sdy.diagnostics import DiagnosticError, handling, printed_once

    try:
        with handling(printed_once()):
            status = command()
        sys.stdout.flush()
    except DiagnosticError as problem:
        print(problem, file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe. Output that Python still buffers must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
