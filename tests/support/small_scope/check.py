"""Check of a case: partitioned, parsed by MLIR, interpreted on all devices, compared with the unpartitioned program."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.diagnostics import DiagnosticError, capture
from small_scope.program import Array, Program

_CONTEXT = mlir.make_ir_context()


@dataclass(frozen=True)
class Verdict:
    """Outcome of a case: "right", "wrong", "invalid", "refused", "crashed" or "seen" before, and the reason."""

    kind: str
    why: str = ""


class Checker:
    """Checker of cases, which skips cases whose propagated module it has already checked."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def __call__(self, program: Program) -> Verdict:
        """Return the verdict on `program`."""
        try:
            with capture():
                module = sdy.parse(program.text)
                whole = [sdy.interpret(module, *arrays) for arrays in program.inputs()]
                sdy.propagate(module)
                # Partitioning treats open and closed dimensions alike.
                given = sdy.format(module).replace(", ?", "").replace("?", "")
                if (digest := sha256(given.encode()).digest()) in self._seen:
                    return Verdict("seen")
                self._seen.add(digest)
                return verdict_on_propagated(module, program.inputs(), whole)
        except DiagnosticError as refusal:
            return Verdict("refused", refusal.message)
        except Exception as problem:
            return Verdict("crashed", f"{type(problem).__name__}: {problem}")


def verdict_on_propagated(
    module: ModuleOp, inputs: Sequence[tuple[Array, ...]], whole: Sequence[tuple[Array, ...]]
) -> Verdict:
    """Partition `module` and compare its results for each of `inputs` with the unpartitioned results `whole`."""
    sdy.partition(module)
    try:
        ir.Module.parse(sdy.format(module), _CONTEXT)
    except ir.MLIRError as problem:
        return Verdict("invalid", str(problem))
    for arrays, expected in zip(inputs, whole, strict=True):
        for index, (one, other) in enumerate(zip(sdy.interpret(module, *arrays), expected, strict=True)):
            if one.shape != other.shape or not _equal(one, other):
                return Verdict("wrong", f"result {index} is {one.tolist()} instead of {other.tolist()}")
    return Verdict("right")


def _equal(one: Array, other: Array) -> bool:
    """Return whether the elements are equal; floating-point elements may differ by rounding."""
    return np.array_equal(one, other) if one.dtype.kind in "iub" else np.allclose(one, other, 1e-4, 1e-4, True)
