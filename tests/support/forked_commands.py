"""Python commands that start in milliseconds, in processes forked by a server that has imported JAX and the tools.

`run` takes the place of `subprocess.run`. In shells, the commands in `commands_folder()` take the place of those of the
environment. Tests of what is imported when, and of how an environment variable changes an import, start a new Python.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import fork_server
from sdy.__main__ import TOOLS

_COMMAND = """\
#!{python} -IS
import os, sys
sys.path.insert(0, {support!r})
from fork_server import ADDRESS, request
words = {prefix} + sys.argv[1:]
if words[:1] and (words[0].endswith(".py") or words[:2] == ["-m", "sdy"]):
    sys.exit(request(os.environ[ADDRESS], words, (0, 1, 2), os.getcwd(), dict(os.environ)))
os.execv({python!r}, [{python!r}, *words])
"""
_SERVERS: list[subprocess.Popen[bytes]] = []


@cache
def commands_folder() -> Path:
    """Start the server, and return the folder with `python` and the tools, for PATH."""
    folder = Path(tempfile.mkdtemp())
    for name, prefix in {"python": [], **{f"sdy-{tool}": ["-m", "sdy", tool] for tool in TOOLS}}.items():
        command = folder / name
        command.write_text(_COMMAND.format(python=sys.executable, support=str(Path(__file__).parent), prefix=prefix))
        command.chmod(0o755)
    words = [sys.executable, fork_server.__file__, folder]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    _SERVERS.append(server)  # it ends with this process, which closes its standard input
    return folder


def environment() -> dict[str, str]:
    """Return this process's environment, for shells that run the commands of `commands_folder()`."""
    folder = str(commands_folder())
    return os.environ | {fork_server.ADDRESS: folder, "PATH": os.pathsep.join([folder, os.environ["PATH"]])}


def run(
    words: Sequence[str | Path],
    *,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the arguments of a Python, as in `python WORDS`, and return the exit status and the output."""
    folder, arguments = str(commands_folder()), [*map(str, words)]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write((stdin or "").encode())
        given.seek(0)
        numbers = given.fileno(), out.fileno(), err.fileno()
        status = fork_server.request(folder, arguments, numbers, str(cwd or Path.cwd()), dict(env or environment()))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read().decode(), err.read().decode())
