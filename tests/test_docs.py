"""What the pages say is what happens: their code blocks run, and what is written by machine is all there."""

import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import doc_blocks
from sdy.stablehlo import STABLEHLO

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "CHANGELOG.md"]
NAMES = [page.relative_to(CHECKOUT).as_posix() for page in PAGES]

NOT_RUN: dict[str, list[str]] = {}
"""The blocks that are not run: of each page, the reasons that it gives, in order."""


@pytest.mark.parametrize("page", NAMES)
def test_the_code_blocks_of_a_page_run(page: str, tmp_path: Path):
    for name in ("bench", "examples"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    done = subprocess.run(
        [sys.executable, CHECKOUT / "tests/doc_blocks.py", CHECKOUT / page],
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_what_is_not_run_is_counted():
    """A block that cannot run here has a title that says why; there are no others than these."""
    reasons = {
        name: [block.not_run for block in doc_blocks.blocks(page) if block.not_run]
        for name, page in zip(NAMES, PAGES, strict=True)
    }
    assert {name: given for name, given in reasons.items() if given} == NOT_RUN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```\n", "+ 1"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```console\n$ echo 1\n2\n```\n", "+ 1"),
        ("```sh\nfalse\n```\n", "exits with 1"),
        ("```mlir\nfunc.func @main() { retrun }\n```\n", "retrun"),
        ("```toml\n[a\n```\n", "TOMLDecodeError"),
        ("```rust\n```\n", "a block of 'rust' is not run"),
        ("```\n```\n", "a block of '' is not run"),
        ("```text\n2\n```\n", "no block of Python is before"),
        ("    print(1)\n", "indented"),
    ],
)
def test_a_block_that_is_wrong_is_found(text: str, problem: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(text)
    runner = CHECKOUT / "tests/doc_blocks.py"
    done = subprocess.run([sys.executable, runner, page], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert problem in done.stdout + done.stderr


def test_blocks_of_a_page_share_their_names_and_count_their_lines(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```python\nimport sys\nprint(x, sys._getframe().f_lineno, __name__)\n```\n\n"
        '```text\n1 4 __main__\n```\n\n```python title="not run: it fails"\n1 / 0\n```\n'
    )
    runner = CHECKOUT / "tests/doc_blocks.py"
    done = subprocess.run([sys.executable, runner, page], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


LIST_OF_FILES = re.compile(r"^\|[^|]*\| `((?:sdy|passes)/[^`]+)` \|", re.MULTILINE)
NAMES_OF_OPERATIONS = {operation.name.partition(".")[2] for operation in STABLEHLO.operations}


def mentions_reverse(file: Path) -> bool:
    """Whether a file has the operation's class, or its name in a text, alone or among names of operations."""
    with file.open("rb") as lines:
        tokens = [*tokenize.tokenize(lines.readline)]
    return any(
        (token.type == tokenize.NAME and token.string == "ReverseOp")
        or (token.type == tokenize.STRING and names_reverse(token.string))
        for token in tokens
    )


def names_reverse(literal: str) -> bool:
    words = literal.strip("\"'").split()
    return "stablehlo.reverse" in literal or (
        "reverse" in words and len(words) > 1 and NAMES_OF_OPERATIONS.issuperset(words)
    )


def test_the_files_of_an_operation_are_those_that_contributing_lists():
    listed = LIST_OF_FILES.findall((CHECKOUT / "CONTRIBUTING.md").read_text())
    files = [file for folder in ("sdy", "passes", "tools") for file in (CHECKOUT / folder).rglob("*.py")]
    found = {file.relative_to(CHECKOUT).as_posix() for file in files if mentions_reverse(file)}
    assert sorted(listed) == sorted(found)
