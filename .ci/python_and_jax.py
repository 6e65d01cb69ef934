"""Run the tests with several pairs of Python and jax, each in its own virtual environment, and print a table.

    python .ci/python_and_jax.py [--if-found] [--environments FOLDER [--only-install]] [PAIR ...] [-- PYTEST ARGUMENTS]

A PAIR is of the form 3.13+0.12. The default is all pairs whose Python is found, as python3.13 on the path or in pyenv.
If none is, the tests run with the current Python and the jax that pip installs for it, except with --if-found. The
environments of FOLDER stay, and those that are there are used; with --only-install, no test runs, but the bytecode that
tests need is written. The exit status is 1 if a test fails.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

PAIRS = ("3.11+0.10", "3.12+0.10", "3.12+0.11", "3.12+0.12", "3.13+0.10", "3.13+0.11", "3.13+0.12")
"""The supported pairs. jax 0.10.2 is the last version for Python 3.11."""

CHECKOUT = Path(__file__).parent.parent


class Outcome(NamedTuple):
    """The numbers of tests of a pair, by outcome."""

    pair: str
    passed: int
    failed: int
    skipped: int


def find_python(version: str) -> str | None:
    """Return the path of a Python of a version such as 3.13; None if it is not installed."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    here = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    return str(here[-1]) if here else shutil.which(f"python{version}")


def install(pair: str, python: str, jax: str, folder: Path) -> Path:
    """Install this checkout and `jax` for `python` in an environment of `folder`, and return its Python."""
    environment = folder / pair
    inside = environment / "bin" / "python"
    if not environment.exists():
        subprocess.run([python, "-m", "venv", environment], check=True)
        # Python compiles modules on import, in less time than pip takes to compile all modules.
        command = [inside, "-m", "pip", "install", "--quiet", "--no-compile", f"{CHECKOUT}[test]", jax]
        subprocess.run(command, check=True)
    return inside


def write_bytecode(inside: Path, arguments: Sequence[str]) -> None:
    """Import the tests with the Python of an environment: each process that runs them would compile all modules."""
    collect = [inside, "-m", "pytest", "--quiet", "--collect-only", "-n", "0", *arguments]
    subprocess.run(collect, cwd=CHECKOUT, check=True, stdout=subprocess.DEVNULL)


def run_tests(pair: str, inside: Path, arguments: Sequence[str]) -> Outcome:
    """Run the tests with the Python of an environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        tests = [inside, "-m", "pytest", "-n", "auto", f"--junitxml={report}", *arguments]
        subprocess.run(tests, cwd=CHECKOUT, check=False)
        return _outcome(pair, report)


def _outcome(pair: str, report: Path) -> Outcome:
    if not report.exists():
        return Outcome(pair, 0, 1, 0)
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    tests, *others = (int(suite.get(kind, "0")) for kind in ("tests", "failures", "errors", "skipped"))
    failures, errors, skipped = others
    return Outcome(pair, tests - failures - errors - skipped, failures + errors, skipped)


def main(words: Sequence[str]) -> int:
    """Run what the command line asks for; returns the exit status."""
    end = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="python_and_jax.py")
    parser.add_argument("pairs", nargs="*", metavar="PAIR")
    parser.add_argument("--if-found", action="store_true")
    parser.add_argument("--environments", metavar="FOLDER", type=Path)
    parser.add_argument("--only-install", action="store_true")
    options = parser.parse_args(words[:end])
    pairs = options.pairs or PAIRS
    if unknown := [pair for pair in pairs if pair not in PAIRS]:
        print(f"not a supported pair: {', '.join(unknown)}; these are: {', '.join(PAIRS)}", file=sys.stderr)
        return 2
    versions = {pair: pair.split("+") for pair in pairs}
    found = [
        (pair, command, f"jax=={jax}.*") for pair, (python, jax) in versions.items() if (command := find_python(python))
    ]
    missing = versions.keys() - {pair for pair, *_ in found}
    here = f"{sys.version_info.major}.{sys.version_info.minor} and the jax for it"
    if not found and not options.if_found:
        found = [(here, sys.executable, "jax")]
    with tempfile.TemporaryDirectory() as folder:
        outcomes: list[Outcome] = []
        for pair, python, jax in found:
            inside = install(pair, python, jax, options.environments or Path(folder))
            if options.only_install:
                write_bytecode(inside, words[end + 1 :])
            else:
                outcomes.append(run_tests(pair, inside, words[end + 1 :]))
    if options.only_install:
        return 0
    print(f"\n{'Python+jax':30} {'passed':>7} {'failed':>7} {'skipped':>7}")
    for outcome in outcomes:
        print(f"{outcome.pair:30} {outcome.passed:7} {outcome.failed:7} {outcome.skipped:7}")
    for pair in sorted(missing):
        print(f"{pair:30} not run: Python {versions[pair][0]} is not found")
    return int(any(outcome.failed or not outcome.passed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
