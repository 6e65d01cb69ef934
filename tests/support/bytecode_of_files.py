"""Bytecode round trip of the test files of a public repository.

    python tests/support/bytecode_of_files.py CHECKOUT [TEXT ...]

CHECKOUT is a work tree of openxla/shardy or openxla/stablehlo; with TEXT, only files whose path contains one of the
texts are read. Each file is split at its `// -----` lines. A part that is expected to parse, and does, is written as
bytecode and parsed from it; both modules must print alike, with locations. A portable artifact beside a text file,
written by a release of StableHLO, must parse to the same module as a portable artifact written from the text now.
jaxlib converts in a forked process for each part. Parts that differ are listed; refused parts are counted by reason.
"""

import re
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from jaxlib.mlir.dialects import stablehlo
from xdsl.context import Context

import sdy
from forked import said
from sdy.diagnostics import DiagnosticError, capture
from sdy.interpreter.check_dialect import CHECK, INTERPRETER
from sdy.passes.driver import read, split
from sdy.text import bytecode, context
from sdy.text.bytecode import jaxlib_converter

SECONDS = 60
"""Timeout of one part, after which it counts as hanging."""

EQUAL = "equal"
"""An outcome beside those of `OUTCOMES`. Details may follow an outcome after a colon."""

OUTCOMES = (
    EQUAL,
    "different",
    "meant to fail",
    "refused by our parser",
    "refused by jaxlib",
    "not read again",
    "dies",
    "hangs",
)


def _in_this_process(data: bytes, what: str, *options: str) -> bytes:
    status, written = jaxlib_converter.run_command(what, options, data)
    if status:
        raise RefusedByJaxlibError(written.decode())
    return written


class RefusedByJaxlibError(Exception):
    """jaxlib refuses to convert its input."""


def there_and_back(text: str, name: str) -> str:
    """Return the outcome of the round trip of one part, given as text."""
    if re.search(r"expected-error|expected-\w+-re", text):
        return "meant to fail"
    bytecode.run_jaxlib = _in_this_process
    signal.alarm(SECONDS)
    ctx = _context()
    with capture():
        try:
            module = sdy.parse(text, name, ctx)
        except DiagnosticError as problem:
            return f"refused by our parser: {_reason(problem)}"
        try:
            data = sdy.to_bytecode(module)
        except (DiagnosticError, RefusedByJaxlibError) as problem:
            return f"refused by jaxlib: {_reason(problem)}"
        try:
            again = sdy.parse(data, name, ctx)
        except (DiagnosticError, RefusedByJaxlibError) as problem:
            return f"not read again: {problem}"
    return _compared(sdy.format(module, debuginfo=True), sdy.format(again, debuginfo=True))


def _context() -> Context:
    ctx = context(allow_unregistered=True)
    ctx.load_dialect(CHECK)
    ctx.load_dialect(INTERPRETER)
    return ctx


def of_release(data: bytes, text: str, name: str) -> str:
    """Return the outcome of reading `data`, a portable artifact that a release of StableHLO wrote from `text`."""
    bytecode.run_jaxlib = _in_this_process
    signal.alarm(SECONDS)
    with capture():
        try:
            module = sdy.parse(text, name)
        except DiagnosticError as problem:
            return f"refused by our parser: {_reason(problem)}"
        try:
            of_then = sdy.parse(data, name)
            written = sdy.parse(sdy.to_bytecode(module, stablehlo.get_current_version()))
        except (DiagnosticError, RefusedByJaxlibError) as problem:
            return f"refused by jaxlib: {_reason(problem)}"
    return _compared(sdy.format(written), sdy.format(of_then))


def _compared(before: str, after: str) -> str:
    for one, other in zip(before.splitlines(), after.splitlines(), strict=False):
        if one != other:
            return f"different: {one.strip()[:300]} | {other.strip()[:300]}"
    return EQUAL if before == after else "different: one is longer"


def _reason(problem: Exception) -> str:
    """Return the error message without the names in it."""
    message = problem.message if isinstance(problem, DiagnosticError) else str(problem)
    return re.sub(r"'[^']*'|\d+", "*", message)[:200]


def attempts(checkout: Path, wanted: list[str]) -> list[tuple[str, Callable[[], str]]]:
    """Return each part's name and the function that returns its outcome."""
    found: list[tuple[str, Callable[[], str]]] = []
    for file in sorted(checkout.rglob("*.mlir")):
        name = str(file.relative_to(checkout))
        if wanted and not any(text in name for text in wanted):
            continue
        source = read(str(file))
        found += [
            (f"{name} part {number}", partial(there_and_back, part.text, part.name))
            for number, part in enumerate(split(source))
        ]
        if (artifact := file.with_name(f"{file.name}.bc")).exists():
            found.append((f"{name}.bc", partial(of_release, artifact.read_bytes(), source.text, name)))
    return found


def main(words: list[str]) -> int:
    checkout, *wanted = words
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for name, attempt in attempts(Path(checkout), wanted):
        told = said(attempt)
        outcome, _, reason = told.partition(": ")
        outcomes[outcome if outcome in OUTCOMES else "raises"] += 1
        if outcome.startswith("refused"):
            reasons[told] += 1
        elif outcome not in (EQUAL, "meant to fail"):
            print(f"{name}: {told}", flush=True)
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    print("\n".join(f"{outcomes[outcome]:6} {outcome}" for outcome in (*OUTCOMES, "raises") if outcomes[outcome]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
