"""Call of a function that may crash or hang, in a forked process."""

import os
import signal
from collections.abc import Callable


def said(function: Callable[[], str]) -> str:
    """Return the result of `function`, or the repr of the exception that it raises, from a forked process.

    If the process does not return, the result is "hangs" if `signal.alarm` ended it, else "dies".
    """
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            told = function()
        except BaseException as problem:
            told = repr(problem)
        os.write(writer, told.encode()[:1000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as output:
        told = output.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return told or ("hangs" if os.WTERMSIG(status) == signal.SIGALRM else "dies")
