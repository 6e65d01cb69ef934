"""Command lines of the tools, run in this process instead of a new one, which would import JAX again."""

import contextlib
import io
import subprocess
import sys
import traceback
from collections.abc import Callable, Generator, Mapping
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from filecheck.main import main as filecheck

from sdy.__main__ import TOOLS

Main = Callable[[list[str]], int | None]


def _tool(name: str) -> Main:
    return lambda words: import_module(f"sdy.tools.sdy_{name}").main(words)


MAINS: Mapping[str, Main] = {
    **{f"sdy-{name}": _tool(name) for name in TOOLS},
    "filecheck": lambda words: filecheck(["filecheck", *words]),
}
"""The main function of each command, which takes the words after its name."""


def run(name: str, *words: str | Path, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of `MAINS` and return its exit status and output, as `subprocess.run` does."""
    arguments = [*map(str, words)]
    # A new process has not reported any unknown operation yet.
    new = patch("sdy.rules.registry._warned", set[str]())
    with _standard_streams(stdin) as (out, err), contextlib.chdir(cwd or "."), new:
        try:
            status = MAINS[name](arguments)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int | None) else 1
        except Exception:
            traceback.print_exc()
            status = 1
    return subprocess.CompletedProcess([name, *arguments], status or 0, *map(_content, (out, err)))


@contextlib.contextmanager
def _standard_streams(stdin: str) -> Generator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"), out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _content(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
