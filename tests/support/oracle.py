"""The C++ Shardy passes of jaxlib, as an oracle.

The passes run in a process forked for each request, because a pass aborts its process on input that it does not expect.
"""

import difflib
import functools
import json
import subprocess
import sys
from typing import Any

import pytest

_CHILD = """
import json, os, sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

def answer(request):
    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        texts = []
        try:
            module = ir.Module.parse(request["text"])
            texts.append(module.operation.get_asm(**request["flags"]))
            for pipeline in request["pipelines"]:
                manager = passmanager.PassManager.parse(pipeline)
                manager.enable_verifier(request["verify"])
                manager.run(module.operation)
                texts.append(module.operation.get_asm(**request["flags"]))
        except (ir.MLIRError, ValueError) as problem:
            return {"error": str(problem), "texts": texts}
        return {"texts": texts}

for line in sys.stdin:
    reader, writer = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writer, "w") as output:
            json.dump(answer(json.loads(line)), output)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answered:
        text = answered.read()
    _, status = os.wait()
    print(text if status == 0 else json.dumps({"error": f"died with status {status}"}), flush=True)
"""


class OracleError(Exception):
    """The oracle refuses its input, or crashes."""


@functools.cache
def _child() -> subprocess.Popen[str]:
    """Start the process that has jaxlib loaded and forks for each request."""
    command = [sys.executable, "-c", _CHILD]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


@functools.cache
def _ask(text: str, pipelines: tuple[str, ...], flags: tuple[tuple[str, bool], ...], verify: bool) -> dict[str, Any]:
    """Return the `texts` before and after each pipeline, up to the `error` if one fails."""
    child = _child()
    assert child.stdin is not None
    assert child.stdout is not None
    request = {"text": text, "pipelines": pipelines, "flags": dict(flags), "verify": verify}
    print(json.dumps(request), file=child.stdin, flush=True)
    return json.loads(child.stdout.readline())


def oracle(
    text: str,
    *passes: str,
    generic: bool = False,
    debuginfo: bool = False,
    local_scope: bool = False,
    verify: bool = True,
) -> str:
    """Return `text` after `passes`, as MLIR prints it with these flags of `sdy.text.format`.

    A pass is named as in a pipeline, `sdy-close-shardings`; a function pass is nested,
    `func.func(sdy-insert-explicit-reshards{enable-full-version=true})`. If `verify` is false, a pass may leave a module
    that MLIR would not parse. Raises OracleError.
    """
    flags = {"print_generic_op_form": generic, "enable_debug_info": debuginfo, "use_local_scope": local_scope}
    answer = _ask(text, tuple(f"builtin.module({name})" for name in passes), tuple(flags.items()), verify)
    if "error" in answer:
        raise OracleError(answer["error"])
    return answer["texts"][-1]


def oracle_after_each(text: str, *passes: str) -> list[str]:
    """Return `text` as MLIR prints it, and after each of `passes` in sequence, up to the first that fails.

    Raises OracleError if `text` is refused or a pass crashes.
    """
    answer = _ask(text, tuple(f"builtin.module({name})" for name in passes), (), True)
    if not answer.get("texts"):
        raise OracleError(answer["error"])
    return answer["texts"]


def assert_same(ours: str, theirs: str) -> None:
    """Check that both texts are the same module: MLIR parses them and prints the same generic form."""
    first, second = (oracle(text, generic=True).splitlines() for text in (ours, theirs))
    if first != second:
        difference = difflib.unified_diff(second, first, "expected", "ours", lineterm="", n=1)
        pytest.fail("\n".join(line[:400] for line in list(difference)[:60]), pytrace=False)
