"""What a function says, of a process that may not survive it."""

import os
import signal
from collections.abc import Callable


def said(function: Callable[[], str]) -> str:
    """What `function` returns, or what it raises as Python shows it, in a process of its own, forked for it.

    Of a process that does not come to that, "hangs" where `signal.alarm` ended it, else "dies".
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
