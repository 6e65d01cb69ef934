"""Check of a program: partitioned, parsed by MLIR, run on all devices, compared with the unpartitioned program."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.diagnostics import DiagnosticError, capture
from sdy.passes.jax.api.compile import compile_unpartitioned
from whole_programs.program import WholeProgram

FAILURES = ("ill-made", "refused", "crashed", "invalid", "wrong")
_CONTEXT = mlir.make_ir_context()


@dataclass(frozen=True)
class Verdict:
    """Outcome of a program: "right" or one of `FAILURES`, and the reason."""

    kind: str
    why: str = ""


def interpreted(module: ModuleOp, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a module, partitioned or not, in the interpreter."""
    return sdy.interpret(module, *inputs)


def whole_by_xla(module: ModuleOp, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run an unpartitioned module on one device with XLA."""
    return tuple(map(np.asarray, compile_unpartitioned(module)(*inputs)))


def parts_by_xla(module: ModuleOp, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run a partitioned module on the devices of its mesh with XLA."""
    return tuple(map(np.asarray, sdy.compile(module)(*inputs)))


def check(program: WholeProgram, by_xla: bool) -> Verdict:
    """Check `program`, partitioned, in XLA or in the interpreter.

    The reference is the interpreter's result for the unpartitioned program. If XLA's result differs, XLA's result for
    the unpartitioned program counts instead: where the specification leaves a result open, such as the conversion of a
    number out of range, XLA may differ from the interpreter.
    """
    try:
        ir.Module.parse(program.text, _CONTEXT)
        with capture():
            expected = interpreted(sdy.parse(program.text), program.inputs)
    except Exception as problem:
        return Verdict("ill-made", _describe(problem))
    try:
        with capture():
            module = sdy.parse(program.text)
            sdy.propagate(module)
            sdy.partition(module)
        text = sdy.format(module)
    except DiagnosticError as refusal:
        return Verdict("refused", refusal.message)
    except Exception as problem:
        return Verdict("crashed", _describe(problem))
    try:
        ir.Module.parse(text, _CONTEXT)
        results = (parts_by_xla if by_xla else interpreted)(module, program.inputs)
    except Exception as problem:
        return Verdict("invalid", _describe(problem))
    difference = _difference(results, expected, program.errors)
    if difference and by_xla:
        difference = _difference(results, whole_by_xla(sdy.parse(program.text), program.inputs), program.errors)
    return Verdict("wrong", difference) if difference else Verdict("right")


def _describe(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


def _difference(results: tuple[Any, ...], expected: tuple[Any, ...], errors: tuple[float, ...]) -> str:
    for index, (one, other, error) in enumerate(zip(results, expected, errors, strict=True)):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {index} is of type {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
        if one.dtype.kind in "biu":
            same = one == other
        elif one.dtype.kind == "c":
            same = _close(one.real, other.real, error) & _close(one.imag, other.imag, error)
        else:
            same = _close(one, other, error)
        if not np.all(same):
            return f"result {index} is {one.tolist()} instead of {other.tolist()}, where {error} is allowed"
    return ""


def _close(one: Any, other: Any, error: float) -> Any:
    one, other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= error)
