"""Run the StableHLO repository's tests of its interpreter in ours, and list the failures.

    python tests/support/interpreter_conformance.py CHECKOUT [TEXT]

CHECKOUT is a work tree of openxla/stablehlo; with TEXT only files whose name contains it are run. Each part of each
file is a program that passes if its checks succeed.
"""

import sys
from pathlib import Path

from sdy.diagnostics import DiagnosticError
from sdy.passes.driver import read, split
from sdy.tools.sdy_interpret import read_program, run_program


def main() -> int:
    checkout, wanted = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    passed = total = 0
    folder = checkout / "stablehlo" / "tests" / "interpret"
    for file in sorted(file for file in folder.rglob("*.mlir") if wanted in file.name):
        for number, part in enumerate(split(read(str(file)))):
            total += 1
            try:
                run_program(read_program(part))
                passed += 1
            except DiagnosticError as problem:
                print(f"{file.relative_to(folder)} part {number}: {problem}")
            except Exception as problem:  # our crashes are listed as failures too
                print(f"{file.relative_to(folder)} part {number}: {type(problem).__name__}: {problem}"[-600:])
    print(f"parts that pass: {passed} of {total}")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
