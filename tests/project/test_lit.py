"""Each lit test is a pytest item.

Test files that use only the tools and filecheck run in this process, in a fraction of the time in which lit starts two
processes for each line. The files that use other commands, and all files with `--thorough`, run through lit. Files
that train a model of examples/ run only with `--thorough`, and one of them with `--before-landing`.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import lit.LitTestCase
import pytest

import commands
from samples import is_before_landing, is_thorough

FILES = Path(__file__).parents[2] / "lit_tests"
SUITE: Any = lit.LitTestCase.load_test_suite([str(FILES)])
CASES = {case.id(): case for case in SUITE}
TRAINING = {
    "sdy :: partitioning/attention_kernel.mlir": is_before_landing(),
    "sdy :: partitioning/pallas_kernels.mlir": is_thorough(),
}
"""Files that train a model, and whether they run."""

Pipeline = Sequence[Sequence[str]]


def pipelines(file: Path) -> list[Pipeline]:
    """Return the RUN lines of `file`, each as the words of the commands between pipes."""
    lines = re.findall(r"^// RUN: (.*)$", file.read_text(), re.MULTILINE)
    words = [shlex.split(line.replace("%s", str(file))) for line in lines]
    return [[[*each] for is_pipe, each in groupby(line, "|".__eq__) if not is_pipe] for line in words]


def runs_here(pipeline: Pipeline) -> bool:
    """Return whether the pipeline needs no process: all its commands are in `commands.MAINS`, without other files."""
    return all(
        command[command[0] == "not"] in commands.MAINS
        and not any(word == ">" or re.search("%[tS]", word) for word in command)
        for command in pipeline
    )


def run(pipeline: Pipeline) -> None:
    """Run the commands of a pipeline, and fail where lit does: at the first status other than the expected one."""
    stdin = ""
    for words in pipeline:
        fails, merges = words[0] == "not", words[-1] == "2>&1"
        name, *arguments = words[fails : len(words) - merges]
        done = commands.run(name, *arguments, stdin=stdin)
        assert (done.returncode != 0) == fails, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
        stdin = done.stderr * merges + done.stdout


@pytest.mark.parametrize("name", [name for name in CASES if TRAINING.get(name, True)])
def test_lit(name: str) -> None:
    lines = pipelines(FILES / name.removeprefix("sdy :: "))
    assert lines
    if is_thorough() or not all(map(runs_here, lines)):
        CASES[name].runTest()
    else:
        for line in lines:
            run(line)
