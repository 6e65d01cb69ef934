"""Run jax's tests of jit, pjit and shard_map with `sdy.jit` as `jax.jit`, and list those that pass under jax alone.

    python tests/support/jax_conformance.py CHECKOUT [--keep FOLDER] [TEXT ...]

CHECKOUT is a work tree of jax-ml/jax at the installed version, whose tests need absl-py; with TEXT only tests whose
name contains one of the texts are run. Each file is run with the original `jax.jit` and with `sdy.jit`, on eight
virtual CPU devices, in a process that is restarted after a crash or a timeout. FOLDER stores the outcome and the
traceback of each test as JSON lines; tests that it already lists are not run again. `jax_differences.toml` has the
reasons of the tests that pass under jax alone; if one has no reason, the exit status is 1.
"""

import argparse
import faulthandler
import importlib
import json
import os
import subprocess
import sys
import tomllib
import unittest
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exception
from types import ModuleType
from typing import Any, TextIO
from unittest.mock import patch

FILES = ("pjit_test", "shard_map_test", "api_test")
REASONS = Path(__file__).with_name("jax_differences.toml")
SECONDS_FOR_A_TEST = 600

Outcomes = dict[str, dict[str, str]]
"""Outcome of each test ("passed", "skipped" or "failed") and its reason."""


def named(test: unittest.TestCase) -> str:
    """Return the file, class and method of a test, without its parameters, which contain memory addresses."""
    return test.id().split(" ")[0]


class OutcomeWriter(unittest.TestResult):
    """Writer of a line for each test's start and outcome, which also shows the test that ended the process."""

    def __init__(self, out: TextIO):
        super().__init__()
        self._out = out

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        faulthandler.dump_traceback_later(SECONDS_FOR_A_TEST, exit=True)
        self._write(test, "started")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._write(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._write(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._write(test, "passed")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._write(test, "failed", "succeeded, which was not expected")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._write(test, "failed", "".join(format_exception(*err)))

    addError = addFailure  # noqa: N815

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.addFailure(test, err)

    def _write(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        print(json.dumps({"test": named(test), "outcome": outcome, "why": why}), file=self._out, flush=True)


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Yield the tests of a suite and of its nested suites."""
    for each in suite:
        yield from tests_of(each) if isinstance(each, unittest.TestSuite) else [each]


def load(folder: Path, name: str, jit: Any) -> ModuleType:
    """Import the test module `name` of `folder` with `jit` in place of `jax.jit` and its aliases.

    jax itself, and modules that it has loaded, keep the real one.
    """
    sys.path.insert(0, str(folder))
    with ExitStack() as while_loading:
        for module in ("jax", "jax._src.api"):
            real = importlib.import_module(module)
            seen = ModuleType(module)
            vars(seen).update(vars(real), jit=jit)
            sys.modules[module] = seen
            while_loading.callback(sys.modules.__setitem__, module, real)
            if parent := module.rpartition(".")[0]:
                while_loading.enter_context(patch.object(importlib.import_module(parent), "api", seen))
        while_loading.enter_context(patch("jax._src.pjit.pjit", jit))
        return importlib.import_module(name)


def work(folder: Path, name: str, jit: str, kept: Path, texts: list[str]) -> None:
    """Run the tests of a file that `kept` does not list as started, with the jit of "jax" or "sdy"."""
    import jax
    from absl import flags

    import sdy

    flags.FLAGS(["tests"])
    module = load(folder, name, {"jax": jax.jit, "sdy": sdy.jit}[jit])
    done = read(kept)
    with kept.open("a") as out:
        writer = OutcomeWriter(out)
        for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if named(test) not in done and is_wanted(named(test), texts):
                unittest.TestSuite([test]).run(writer)


def is_wanted(test: str, texts: list[str]) -> bool:
    """Return whether the name of a test contains one of `texts`, or `texts` is empty."""
    return not texts or any(text in test for text in texts)


def read(kept: Path) -> Outcomes:
    """Return the recorded outcomes. A test that started and has no outcome ended its process: it failed."""
    outcomes: Outcomes = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        each = json.loads(line)
        if outcomes.get(each["test"], {}).get("outcome") != "failed":  # an earlier subtest may have failed
            outcomes[each["test"]] = each
    ended = {"outcome": "failed", "why": "ended its process, or took too long"}
    return {test: each if each["outcome"] != "started" else {**each, **ended} for test, each in outcomes.items()}


def run(checkout: Path, name: str, jit: str, kept: Path, texts: list[str]) -> Outcomes:
    """Run a file's tests until all have been started, restarting the process after each crash."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    command = [sys.executable, __file__, "--worker", name, jit, str(kept), str(checkout), *texts]
    while True:
        before = len(read(kept))
        with kept.with_suffix(".log").open("a") as log:
            process = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)
        if process.returncode == 0 or len(read(kept)) == before:
            return read(kept)


def reason(test: str, table: dict[str, list[str]]) -> str | None:
    """Return the reason in `table` for a test that passes under jax alone."""
    return next((why for why, patterns in table.items() if any(fnmatchcase(test, each) for each in patterns)), None)


def last_line(why: str) -> str:
    """Return the last line of a traceback."""
    lines = [line for line in why.splitlines() if line.strip() and not line.startswith((" ", "-", "For simplicity"))]
    return lines[-1][:200] if lines else ""


def main(words: list[str]) -> int:
    """Run the tests and return 1 if one passes under jax alone without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("texts", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args(words)
    if options.worker:
        name, jit, kept = options.worker
        work(options.checkout / "tests", name, jit, Path(kept), options.texts)
        return 0
    table = tomllib.loads(REASONS.read_text())
    unexplained = 0
    with TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            outcomes = {
                jit: run(options.checkout, name, jit, folder / f"{name}.{jit}.jsonl", options.texts)
                for jit in ("jax", "sdy")
            }
            passed = {
                jit: {
                    test
                    for test, each in tests.items()
                    if each["outcome"] == "passed" and is_wanted(test, options.texts)
                }
                for jit, tests in outcomes.items()
            }
            for test in sorted(passed["jax"] - passed["sdy"]):
                why = reason(test, table)
                unexplained += why is None
                print(f"{test}: {why or last_line(outcomes['sdy'][test]['why'])}")
            both = len(passed["jax"] & passed["sdy"])
            print(f"{name}: {len(passed['jax'])} pass under jax, {len(passed['sdy'])} under sdy, {both} under both")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
