"""Shardy's MPMD compiler, the C++ in jaxlib, in a process of its own, and pipelines for it to compile.

`jaxlib._sdy_mpmd` imports a module by a name of its build, `jax.jaxlib`; an alias in `sys.modules` makes it importable.
A pipeline is a JAX function that calls functions made by `named` and `per_microbatch`: `as_mpmd` turns their calls into
named computations and MPMD calls, as Shardy's own front end does.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import jax
import pytest
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, Signedness, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.rewriter import Rewriter

import sdy
from sdy.mpmd import CallOp as MicrobatchCallOp
from sdy.mpmd import NamedComputationOp, ReturnOp
from sdy.mpmd.attribute_syntax import UserOrigin
from sdy.mpmd.attributes import UserOriginAttr

_CHILD = """
import json, os, sys
import jaxlib, jaxlib._jax
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # the compiler logs to standard output
sys.modules["jax.jaxlib"], sys.modules["jax.jaxlib._jax"] = jaxlib, jaxlib._jax
try:
    import jaxlib._sdy_mpmd as mpmd
except ImportError:
    json.dump(None, answer)
    sys.exit()
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

request = json.load(sys.stdin)
with mlir.make_ir_context():
    module = ir.Module.parse(request["text"])
    for phases in request["phases"]:
        options = request["partitioning"] | {"assignment": {
            name: tuple(mesh) if isinstance(mesh, list) else mesh
            for name, mesh in request["partitioning"]["assignment"].items()
        }}
        phase = mpmd.PartitioningPhase
        result = mpmd.apply_mpmd_partitioning(
            module, fragment_merge_rules=[], fragment_schedule_rules=[], phases=getattr(phase, phases), **options
        )
        module = result.mpmd_module
    texts = [module.operation.get_asm(**flags) for flags in request["flags"]]
json.dump(texts, answer)
"""


def printed(text: str, *flags: dict[str, bool]) -> list[str]:
    """Return an MPMD module as MLIR prints it with each of these flags; skip the test where jaxlib has no MPMD."""
    return _ask({"text": text, "flags": flags, "phases": ()})


def partitioned(
    module: ModuleOp,
    meshes: Mapping[str, Mapping[str, int]],
    assignment: Mapping[str, str | tuple[str, int]],
    *,
    phases: Sequence[str] = ("IMPORT", "OPTIMIZE", "PARTITION"),
    donated: Sequence[int] = (),
    schedule: str = "1F1B",
) -> str:
    """Return a module after phases of Shardy's MPMD compiler, with every inference of meshes allowed."""
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    partitioning: dict[str, Any] = {
        "func_name": "main",
        "named_meshes": [(name, list(axes.items())) for name, axes in meshes.items()],
        "assignment": assignment,
        "input_meshes": [None] * len(main.function_type.inputs),
        "output_meshes": [None] * len(main.function_type.outputs),
        "donate_argnums": list(donated),
        "partitioning_options": {
            "mpmd_infer_transfers": True,
            "mpmd_infer_cross_mesh_reductions": True,
            "mpmd_pipeline_schedule": schedule,
        },
    }
    request: dict[str, Any] = {
        "text": sdy.format(module),
        "partitioning": partitioning,
        "phases": phases,
        "flags": [{}],
    }
    (text,) = _ask(request)
    return text


def _ask(request: dict[str, Any]) -> Any:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    answer = json.loads(child.stdout)
    if answer is None:
        pytest.skip("jaxlib has no MPMD compiler")
    return answer


_NAMED, _MICROBATCH = "named__", "microbatch__"


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, whose calls and the transposes of them become named computations."""

    def forward(*arguments: Any) -> Any:
        return jax.vjp(function, *arguments)

    def backward(residuals: Any, cotangent: Any) -> Any:
        return residuals(cotangent)

    def primal(*arguments: Any) -> Any:
        return function(*arguments)

    for each, transposes in ((primal, 0), (forward, 0), (backward, 1)):
        each.__name__ = f"{_NAMED}{name}__{transposes}__"
    call = jax.custom_vjp(jax.jit(primal))
    call.defvjp(jax.jit(forward), jax.jit(backward))
    return call


def per_microbatch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, whose calls are microbatches."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    call.__name__ = f"{_MICROBATCH}"
    return jax.jit(call)


def as_mpmd(function: Callable[..., Any], *arguments: Any) -> ModuleOp:
    """Lower a function of JAX to a module with MPMD operations."""
    module = sdy.parse(jax.jit(function, keep_unused=True).lower(*arguments).as_text())
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    counter = count()
    for call in [op for op in module.walk() if isinstance(op, CallOp)]:
        name = call.callee.string_value()
        if (match := re.match(rf"{_NAMED}(\w+?)__(\d)__", name)) is not None:
            body = functions[name].body.clone()
            returned = body.block.last_op
            assert returned is not None
            Rewriter.replace_op(returned, ReturnOp(*returned.operands))
            origin = UserOriginAttr(UserOrigin(match[1], int(match[2])))
            new = NamedComputationOp.create(
                operands=call.operands, result_types=call.result_types, properties={"origin": origin}, regions=[body]
            )
            Rewriter.replace_op(call, new)
        elif name.startswith(_MICROBATCH):
            new = MicrobatchCallOp.create(
                operands=call.operands,
                result_types=call.result_types,
                properties={"callee": SymbolRefAttr(name)},
                attributes={"call_counter": IntegerAttr(next(counter), IntegerType(32, Signedness.UNSIGNED))},
            )
            Rewriter.replace_op(call, new)
    for name, each in functions.items():
        if name.startswith(_NAMED):
            each.detach()
    return module
