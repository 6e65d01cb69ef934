"""What every command does at its edges: no traceback for an interrupt, a closed pipe or a person's mistake."""

import os
import sys
from collections.abc import Callable

from sdy.diagnostics import DiagnosticError, handling, printed_once

INTERRUPTED = 130


def guarded(command: Callable[[], int], refused: int = 1) -> int:
    """The exit status of `command`, `refused` with the diagnostic on standard error where it refuses its input.

    Warnings go there too, as MLIR's tools print them, each once for its place and cause.
    """
    try:
        with handling(printed_once()):
            status = command()
        sys.stdout.flush()
    except DiagnosticError as problem:
        print(problem, file=sys.stderr)
        return refused
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as `head` does; what Python still holds for it must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
