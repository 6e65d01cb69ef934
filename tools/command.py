"""Exit status of commands, without tracebacks for interrupts, closed pipes and input errors."""

import os
import sys
from collections.abc import Callable

from sdy.diagnostics import DiagnosticError, handling, printed_once

REFUSED = 2
"""Exit status after an invalid flag, file or program, as in argparse."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


def guarded(command: Callable[[], int]) -> int:
    """Run `command` and return its exit status, or REFUSED if it raises DiagnosticError.

    Diagnostics are printed to standard error as MLIR's tools print them, each warning once per location and cause.
    """
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
