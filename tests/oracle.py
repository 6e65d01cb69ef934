"""The C++ Shardy passes inside jaxlib, as an oracle to compare with.

They run in a child process, because a pass that meets something it does not expect aborts the process it is in.
"""

import difflib
import functools
import json
import subprocess
import sys

import pytest

_CHILD = """
import json, sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

request = json.load(sys.stdin)
with mlir.make_ir_context() as context:
    context.allow_unregistered_dialects = True
    try:
        module = ir.Module.parse(request["text"])
        for pipeline in request["pipelines"]:
            passmanager.PassManager.parse(pipeline).run(module.operation)
    except (ir.MLIRError, ValueError) as problem:
        sys.exit(f"{problem}")
    sys.stdout.write(module.operation.get_asm(print_generic_op_form=request["generic"]))
"""


class OracleError(Exception):
    """The oracle refused its input, or did not survive it."""


@functools.cache
def _ask(text: str, pipelines: tuple[str, ...], generic: bool) -> str:
    request = json.dumps({"text": text, "pipelines": pipelines, "generic": generic})
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=request, capture_output=True, text=True, timeout=300, check=False
    )
    if child.returncode:
        raise OracleError(f"exit status {child.returncode}: {child.stderr[-2000:]}")
    return child.stdout


def oracle(text: str, *passes: str, generic: bool = False) -> str:
    """`text` after each of `passes`, as MLIR prints it.

    A pass is named as in a pipeline, `sdy-close-shardings`; one that works on functions is written nested,
    `func.func(sdy-insert-explicit-reshards{enable-full-version=true})`. Raises OracleError.
    """
    return _ask(text, tuple(f"builtin.module({name})" for name in passes), generic)


def assert_same(ours: str, theirs: str) -> None:
    """Both texts are the same module: MLIR reads them and prints the same generic form of both."""
    first, second = (oracle(text, generic=True).splitlines() for text in (ours, theirs))
    if first != second:
        difference = difflib.unified_diff(second, first, "expected", "ours", lineterm="", n=1)
        pytest.fail("\n".join(line[:400] for line in list(difference)[:60]), pytrace=False)
