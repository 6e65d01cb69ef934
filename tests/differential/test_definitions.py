"""Violations of an operation's definition are refused with MLIR's messages and locations."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from mutilated_operations import mutilations, operations
from samples import sample
from sdy.diagnostics import DiagnosticError, capture
from sdy.text import parse

# Definitions newer than jaxlib's, with other operands, results or properties; and keywords, which are typed attributes
# in MLIR but not in xDSL.
NOT_COMPARED = {
    "chlo.constant_like": {"value a word"},
    "chlo.top_k": {"without is_stable", "is_stable a word"},
    "sdy.all_reduce": {"reduction_op a word"},
    "sdy.reduce_scatter": {"reduction_op a word"},
    "stablehlo.collective_broadcast": {
        "an operand less",
        "an operand more",
        "a result more",
        "a bare number",
        "a number made",
        "has_dynamic_root a word",
    },
    "stablehlo.custom_call": {"result_tilings a word"},
}
# MLIR accepts an extra operand as valid, and crashes on a missing one.
UNCOUNTED = {"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"}

_MLIR = """
import json, sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

def refusal(text):
    try:
        ir.Module.parse(text)
    except ir.MLIRError as problem:
        return str(problem)

with mlir.make_ir_context():
    print(json.dumps([refusal(text) for text in json.load(sys.stdin)]))
"""


def refused_by_mlir(texts: Sequence[str]) -> list[str]:
    """Return the first error of MLIR for each text with its location, or "". One process parses all texts."""
    command = [sys.executable, "-c", _MLIR]
    answer = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True).stdout
    said: list[str | None] = json.loads(answer)
    return ["" if each is None else ": ".join(re.findall(r'error: "-":(\d+:\d+): (.*)', each)[0]) for each in said]


def refused(text: str) -> str:
    try:
        with capture():
            parse(text)
    except DiagnosticError as problem:
        place = problem.where
        return f"{place.line}:{place.column}: {problem.message}" if place is not None else problem.message
    return ""


def test_violated_definitions_are_refused_as_by_mlir():
    alone = operations()
    assert len(alone) > 170
    known = {name for name, said in zip(alone, refused_by_mlir([*alone.values()]), strict=True) if not said}
    cases = [
        (name, change, text)
        for name in sample(alone, one_in=30)
        for change, text in mutilations(alone[name], name)
        if name in known and change not in NOT_COMPARED.get(name, ())
        if name not in UNCOUNTED or change not in ("an operand less", "an operand more")
    ]
    theirs = refused_by_mlir([text for _, _, text in cases])
    different = [
        f"{name}, {change}:\n  {said}\n  {ours}"
        for (name, change, text), said in zip(cases, theirs, strict=True)
        if (ours := refused(text)) != said
    ]
    assert "\n".join(different) == ""
