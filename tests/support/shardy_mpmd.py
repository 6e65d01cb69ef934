"""Shardy's MPMD compiler, the C++ in jaxlib, in a process of its own.

`jaxlib._sdy_mpmd` imports a module by a name of its build, `jax.jaxlib`; an alias in `sys.modules` makes it importable.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

_CHILD = """
import json, sys
import jaxlib, jaxlib._jax
sys.modules["jax.jaxlib"], sys.modules["jax.jaxlib._jax"] = jaxlib, jaxlib._jax
try:
    import jaxlib._sdy_mpmd as mpmd
except ImportError:
    print(json.dumps(None))
    sys.exit()
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

request = json.load(sys.stdin)
with mlir.make_ir_context():
    module = ir.Module.parse(request["text"])
    texts = [module.operation.get_asm(**flags) for flags in request["flags"]]
print(json.dumps(texts))
"""


def printed(text: str, *flags: dict[str, bool]) -> list[str]:
    """Return an MPMD module as MLIR prints it with each of these flags; skip the test where jaxlib has no MPMD."""
    return _ask({"text": text, "flags": flags})


def _ask(request: dict[str, Any]) -> Any:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout)
    if answer is None:
        pytest.skip("jaxlib has no MPMD compiler")
    return answer
