"""Run jax's own tests of jit, pjit and shard_map with `sdy.jit` for `jax.jit`, and say which pass under jax alone.

    python tests/support/jax_conformance.py CHECKOUT [--keep FOLDER] [TEXT ...]

CHECKOUT is a work tree of jax-ml/jax at the version that is installed, whose tests need absl-py; with TEXT only tests
whose name contains one of the texts are run. Each file is run once as it is and once with `sdy.jit`, on eight virtual
CPU devices, in a process that is started again where a test ended it or took too long. What each test said, with its
traceback, is kept in FOLDER as JSON lines, and what is there already is not run again. `jax_differences.toml` has the
reasons of the tests that pass under jax alone; where one has none, the exit status is 1.
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

Said = dict[str, dict[str, str]]
"""For each test its outcome, "passed", "skipped" or "failed", and why."""


def named(test: unittest.TestCase) -> str:
    """The file, class and method of a test, without its parameters, which stand there with addresses in memory."""
    return test.id().split(" ")[0]


class Told(unittest.TestResult):
    """Writes each test's start and outcome as a line, so that the lines also tell which test ended the process."""

    def __init__(self, out: TextIO):
        super().__init__()
        self._out = out

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        faulthandler.dump_traceback_later(SECONDS_FOR_A_TEST, exit=True)
        self._tell(test, "started")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._tell(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._tell(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._tell(test, "passed")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._tell(test, "failed", "succeeded, which was not expected")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._tell(test, "failed", "".join(format_exception(*err)))

    addError = addFailure  # noqa: N815

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.addFailure(test, err)

    def _tell(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        print(json.dumps({"test": named(test), "outcome": outcome, "why": why}), file=self._out, flush=True)


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """The tests of a suite and of those in it."""
    for each in suite:
        yield from tests_of(each) if isinstance(each, unittest.TestSuite) else [each]


def load(folder: Path, name: str, jit: Any) -> ModuleType:
    """The module of tests `name` in `folder`, that finds `jit` as `jax.jit`, and wherever else it looks for that.

    jax itself goes on with the real one, and so does what is made of it.
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
    """Run those tests of a file, under "jax" or "sdy", of which `kept` tells no start."""
    import jax
    from absl import flags

    import sdy

    flags.FLAGS(["tests"])
    module = load(folder, name, {"jax": jax.jit, "sdy": sdy.jit}[jit])
    done = read(kept)
    with kept.open("a") as out:
        told = Told(out)
        for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if named(test) not in done and is_wanted(named(test), texts):
                unittest.TestSuite([test]).run(told)


def is_wanted(test: str, texts: list[str]) -> bool:
    """Whether the name of a test contains one of the texts, where there are any."""
    return not texts or any(text in test for text in texts)


def read(kept: Path) -> Said:
    """What is kept of each test that was started. One that ended its process failed."""
    said: Said = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        each = json.loads(line)
        if said.get(each["test"], {}).get("outcome") != "failed":  # a part of the test may have failed before
            said[each["test"]] = each
    ended = {"outcome": "failed", "why": "ended its process, or took too long"}
    return {test: each if each["outcome"] != "started" else {**each, **ended} for test, each in said.items()}


def run(checkout: Path, name: str, jit: str, kept: Path, texts: list[str]) -> Said:
    """Run a file's tests until all have been started, in as many processes as that takes."""
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
    """Why a test passes under jax alone, as the table has it."""
    return next((why for why, patterns in table.items() if any(fnmatchcase(test, each) for each in patterns)), None)


def last_line(why: str) -> str:
    """What a traceback ends with."""
    lines = [line for line in why.splitlines() if line.strip() and not line.startswith((" ", "-", "For simplicity"))]
    return lines[-1][:200] if lines else ""


def main(words: list[str]) -> int:
    """Run the tests and return 1 if one passes under jax alone without a reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("texts", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args(words)
    if given.worker:
        name, jit, kept = given.worker
        work(given.checkout / "tests", name, jit, Path(kept), given.texts)
        return 0
    table = tomllib.loads(REASONS.read_text())
    unexplained = 0
    with TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            said = {
                jit: run(given.checkout, name, jit, folder / f"{name}.{jit}.jsonl", given.texts)
                for jit in ("jax", "sdy")
            }
            passed = {
                jit: {
                    test for test, each in tests.items() if each["outcome"] == "passed" and is_wanted(test, given.texts)
                }
                for jit, tests in said.items()
            }
            for test in sorted(passed["jax"] - passed["sdy"]):
                why = reason(test, table)
                unexplained += why is None
                print(f"{test}: {why or last_line(said['sdy'][test]['why'])}")
            both = len(passed["jax"] & passed["sdy"])
            print(f"{name}: {len(passed['jax'])} pass under jax, {len(passed['sdy'])} under sdy, {both} under both")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
