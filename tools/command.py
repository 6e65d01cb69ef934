"""What every command does at its edges: no traceback for an interrupt, a closed pipe or a person's mistake."""

import os
import sys
from collections.abc import Callable

from sdy.diagnostics import DiagnosticError, handling, printed_once

REFUSED = 2
"""The exit status of a wrong flag, an unreadable file and a program that is refused, as argparse has it."""

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


def guarded(command: Callable[[], int]) -> int:
    """Run `command` and return its exit status, or REFUSED with its diagnostic on standard error.

    Warnings go there too, as MLIR's tools print them, each once for its place and cause.
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
        # The reader has gone, as `head` does; what Python still holds for it must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
