"""A server that runs Python commands in processes forked from one that has imported JAX and the tools.

A new Python takes more than a second to import them, which is most of the time of a short command. `forked_commands`
starts servers and sends them commands. The server has no threads and has not chosen devices, so that a fork is like a
new process.

A request is a JSON array of the command's words, its folder and its environment, with its standard streams.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
import traceback

ADDRESS = "SDY_FORK_SERVER"
"""The environment variable with the folder of the server's socket."""


def request(folder: str, words: list[str], streams: tuple[int, int, int], cwd: str, env: dict[str, str]) -> int:
    """Run a command through the server of `folder` and return its exit status, negative for a signal."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.join(folder, "socket"))
        data = json.dumps([words, cwd, env]).encode()
        socket.send_fds(connection, [len(data).to_bytes(8)], streams)
        connection.sendall(data)
        answer = connection.recv(8)
    return int.from_bytes(answer, signed=True)


def serve(folder: str) -> None:
    """Answer requests until standard input is closed."""
    for name in ("jax.numpy", "sdy", *(f"sdy.tools.sdy_{tool}" for tool in _tools())):
        importlib.import_module(name)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(folder, "socket"))
        listener.listen(64)
        print("ready", flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _tools() -> list[str]:
    from sdy.__main__ import TOOLS

    return [*TOOLS]


def _answer(connection: socket.socket) -> None:
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    data = b""
    while len(data) < int.from_bytes(head):
        data += connection.recv(1 << 20)
    if (child := os.fork()) == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os._exit(_run(*json.loads(data)))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(status.to_bytes(8, signed=True))
    os._exit(0)


def _run(words: list[str], cwd: str, env: dict[str, str]) -> int:
    """Run a command in this process and return its exit status."""
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    os.chdir(cwd)
    paths = env.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    os.environ.clear()
    os.environ.update(env)
    try:
        status = _start(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):
            stream.flush()
    return status or 0


def _start(words: list[str]) -> int | None:
    match words:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            sys.path.insert(0, "")
            exec(code, {"__name__": "__main__"})
        case ["-m", "sdy", *rest]:
            from sdy.__main__ import main

            sys.path.insert(0, os.getcwd())
            return main(rest)
        case [script, *rest]:
            sys.argv = [script, *rest]
            sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
            runpy.run_path(script, run_name="__main__")
        case _:
            raise ValueError(f"no command: {words}")
    return None


if __name__ == "__main__":
    serve(sys.argv[1])
