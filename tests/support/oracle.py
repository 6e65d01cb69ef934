"""The C++ Shardy passes inside jaxlib, as an oracle to compare with.

They run in a child process, forked for each question, because a pass that meets something it does not expect aborts the
process it is in.
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
    """The oracle refused its input, or did not survive it."""


@functools.cache
def _child() -> subprocess.Popen[str]:
    """The process that has jaxlib loaded, and forks for each request."""
    command = [sys.executable, "-c", _CHILD]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


@functools.cache
def _ask(text: str, pipelines: tuple[str, ...], flags: tuple[tuple[str, bool], ...], verify: bool) -> dict[str, Any]:
    """The `texts` that there are at first and after each of the pipelines, up to the `error` if there is one."""
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
    """`text` after each of `passes`, as MLIR prints it, with the flags that `sdy.text.format` has as well.

    A pass is named as in a pipeline, `sdy-close-shardings`; one that works on functions is written nested,
    `func.func(sdy-insert-explicit-reshards{enable-full-version=true})`. With `verify` false, a pass may leave a module
    that MLIR would not read. Raises OracleError.
    """
    flags = {"print_generic_op_form": generic, "enable_debug_info": debuginfo, "use_local_scope": local_scope}
    answer = _ask(text, tuple(f"builtin.module({name})" for name in passes), tuple(flags.items()), verify)
    if "error" in answer:
        raise OracleError(answer["error"])
    return answer["texts"][-1]


def oracle_after_each(text: str, *passes: str) -> list[str]:
    """`text` as MLIR prints it, and after each of `passes`, one on what the other has made, up to one that refuses.

    Raises OracleError where `text` is refused or a pass does not survive.
    """
    answer = _ask(text, tuple(f"builtin.module({name})" for name in passes), (), True)
    if not answer.get("texts"):
        raise OracleError(answer["error"])
    return answer["texts"]


def assert_same(ours: str, theirs: str) -> None:
    """Both texts are the same module: MLIR reads them and prints the same generic form of both."""
    first, second = (oracle(text, generic=True).splitlines() for text in (ours, theirs))
    if first != second:
        difference = difflib.unified_diff(second, first, "expected", "ours", lineterm="", n=1)
        pytest.fail("\n".join(line[:400] for line in list(difference)[:60]), pytrace=False)
