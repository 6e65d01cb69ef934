"""Run the public StableHLO repository's tests of its dialects and list the parts that pass.

    python tests/support/stablehlo_conformance.py CHECKOUT [TEXT ...]

CHECKOUT is a work tree of openxla/stablehlo; with TEXT only files whose name contains one of the texts are run. Each
file is split at its `// -----` lines as its RUN lines ask. A part passes if it gives the diagnostics that its comments
expect and if FileCheck accepts the output, for each RUN line that only parses, verifies and prints;
`--hlo-test-infer` prints inferred result types. Where a RUN line uses another pass, bytecode or a debug build, or a
part reifies the shapes of its results, it is only parsed and verified, and the table says so. Failing parts are listed
with the reason; a failing part counts all its functions as failing.
"""

import re
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from filecheck.matcher import Matcher
from filecheck.options import Options
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnregisteredOp
from xdsl.passes import ModulePass

from sdy.diagnostics import DiagnosticError, capture, report
from sdy.passes.driver import Source, Timing, read, split
from sdy.stablehlo.checks.inference import InferredResults
from sdy.tools.expected_diagnostics import mismatches
from sdy.tools.sdy_opt import Arguments, parse_arguments, process

FILES = ("future_type", "infer_*", "ops_*", "print_*", "replica_groups*", "verify_*", "chlo/*")
"""The tests of the dialects, below `stablehlo/tests`; the others test passes and interpreters."""

NOT_OF_THESE_DIALECTS = {"ops_interpreter.mlir"}
"""Tests of the reference interpreter's own dialect."""

_TOOL = "stablehlo-opt"
_INFER = "--hlo-test-infer"
_REIFY = "hlo_test_infer.reify_return_type_shapes"


class InferReturnTypes(ModulePass):
    """Replace `hlo_test_infer.get_return_types` by the types inferred for the operand's defining operation."""

    name = "hlo-test-infer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Attach the inferred types as attributes `types0`, `types1`, ..."""
        for asking in op.walk():
            if isinstance(asking, UnregisteredOp) and asking.op_name.data == "hlo_test_infer.get_return_types":
                owners = [asked.owner for asked in asking.operands]
                if len(owners) == 1 and isinstance(owners[0], InferredResults):
                    inferred = {f"types{number}": type_ for number, type_ in enumerate(owners[0].infer_types())}
                    asking.attributes |= {"op_name__": StringAttr("hlo_test_infer.return_types"), **inferred}


@dataclass(frozen=True)
class Run:
    """A RUN line that only parses, verifies and prints: the flags of each stage, and whether FileCheck is the last."""

    stages: tuple[Arguments, ...]
    checked: bool


@dataclass(frozen=True)
class Runs:
    """The supported RUN lines of a file, and the reasons why others are not supported."""

    followed: tuple[Run, ...]
    left_out: tuple[str, ...]


def run_lines(text: str) -> list[str]:
    """Return the commands after `RUN:`, joining lines continued with a backslash."""
    commands: list[str] = re.findall(r"^// RUN:(.*)$", text, flags=re.MULTILINE)
    return "\n".join(commands).replace("\\\n", " ").split("\n")


def read_runs(text: str) -> Runs:
    """Separate the supported RUN lines from the others."""
    followed: list[Run] = []
    left_out: list[str] = []
    for line in run_lines(text):
        commands = [command.split() for command in line.split("|")]
        checked = commands[-1][0] == "FileCheck"
        tools = commands[:-1] if checked else commands
        if unusual := [command[0] for command in tools if command[0] != _TOOL]:
            left_out.append(unusual[0])
            continue
        try:
            followed.append(Run(tuple(map(read_flags, tools)), checked))
        except DiagnosticError as problem:
            left_out.append(problem.message.split(" (")[0])
    return Runs(tuple(followed), tuple(left_out))


def read_flags(command: list[str]) -> Arguments:
    """Parse the flags of a command. Raises DiagnosticError for an unsupported flag."""
    arguments = parse_arguments([word for word in command[1:] if word not in ("%s", _INFER)])
    if _INFER in command:
        arguments.passes.append(InferReturnTypes())
    return arguments


def through_tool(part: Source, arguments: Arguments, wrong: list[str]) -> str:
    """Return the output for a part after parsing and verifying it; append its problems to `wrong`."""
    printed = ""
    with capture() as diagnostics:
        try:
            printed = str(process(part, arguments, Timing()))
        except DiagnosticError as problem:
            for diagnostic in problem.diagnostics:
                report(diagnostic)
        except Exception as problem:
            wrong.append(f"{part.name}:1:1: exception: {problem!r}")
    wrong += [f"{mismatch.location}: {mismatch.message}" for mismatch in mismatches(part, diagnostics)]
    return printed


def check(part: Source, printed: str, wrong: list[str]) -> None:
    """Append FileCheck's complaints about the output of a part to `wrong`."""
    if "// CHECK" not in part.text:
        return
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        checks, found = Path(folder, "checks"), Path(folder, "found")
        checks.write_text(part.text)
        found.write_text(printed)
        if Matcher.from_opts(Options(str(checks), str(found), enable_var_scope=True)).run():
            message = " ".join(said.getvalue().rpartition("error:")[2].split())
            wrong.append(f"{part.name}:1:1: FileCheck: {message[:400]}")


def problems(part: Source, runs: Runs) -> list[str]:
    """Return the problems of a part; empty if it passes."""
    wrong: list[str] = []
    for run in runs.followed:
        stage = part
        for arguments in run.stages:
            stage = Source(through_tool(stage, arguments, wrong), f"printed {part.name}")
        if run.checked and _REIFY not in part.text:
            check(part, stage.text, wrong)
    if not runs.followed:
        through_tool(part, Arguments(allow_unregistered_dialect=True), wrong)
    return wrong


def functions(text: str) -> int:
    """Count the functions of a part; 1 if it tests something else."""
    return max(1, len(re.findall(r"^ *(?:func\.)?func [^@\n]*@", text, flags=re.MULTILINE)))


def row(name: str, counts: Counter[str], note: str = "") -> str:
    """Format a line of the table."""
    return (
        f"{name:44} {counts['good parts']:5} of {counts['parts']:5} {counts['good parts'] / counts['parts']:7.1%}"
        f" {counts['good functions']:5} of {counts['functions']:5}"
        f" {counts['good functions'] / counts['functions']:7.1%}  {note}"
    )


def main(words: list[str]) -> int:
    """Run the tests and return 1 if any part fails."""
    tests, wanted = Path(words[0], "stablehlo", "tests"), words[1:]
    paths = sorted(path for pattern in FILES for path in tests.glob(f"{pattern}.mlir"))
    paths = [path for path in paths if path.name not in NOT_OF_THESE_DIALECTS]
    table = [f"{'file':44} {'parts':>22} {'functions':>22}  not followed"]
    total: Counter[str] = Counter()
    for path in paths:
        name = str(path.relative_to(tests))
        if wanted and not any(text in name for text in wanted):
            continue
        source, counts = read(str(path)), Counter[str]()
        runs = read_runs(source.text)
        for part in split(source):
            wrong = problems(part, runs)
            print(*wrong, sep="\n", end="\n" if wrong else "")
            counts.update({"parts": 1, "functions": functions(part.text)})
            counts.update({} if wrong else {"good parts": 1, "good functions": functions(part.text)})
            counts["reifying parts"] += _REIFY in part.text
        reifying = f"shapes reified in {counts['reifying parts']} parts" if counts["reifying parts"] else ""
        table.append(row(name, counts, "; ".join(filter(None, dict.fromkeys((*runs.left_out, reifying))))))
        total += counts
    print(*table, row("all", total), sep="\n")
    return int(total["good parts"] < total["parts"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
