"""Code blocks of the pages run and print what the pages show; generated pages are complete."""

import io
import re
import tokenize
from pathlib import Path

import pytest

import doc_blocks
import forked_commands
import lint_page
import passes_page
import sdy
from samples import sample
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.catalog import PASSES
from sdy.stablehlo import STABLEHLO

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
RUNNER = CHECKOUT / "tests/support/doc_blocks.py"
PAGES = [CHECKOUT / "README.md", *sorted(DOCS.rglob("*.md")), CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "CHANGELOG.md"]
NAMES = [page.relative_to(CHECKOUT).as_posix() for page in PAGES]

NOT_RUN = {
    "docs/concepts/auto.md": ["tests/numerics/test_automatic_example.py compares it", "a part of layout.py"],
    "docs/tutorial.md": ["installs packages"],
    "docs/guides/model_explorer.md": ["installs packages"],
    "docs/guides/torch.md": ["needs torch"] * 3,
    "docs/guides/blocks.md": ["a picture"],
    "docs/guides/plain.md": ["takes IREE's compiler and runtime"],
    "README.md": ["installs packages", "installs packages and runs all tests"],
    "CONTRIBUTING.md": [
        "installs packages and runs all tests",
        "a picture",
        "takes an hour",
        "takes an hour",
        "takes checkouts of Shardy and of StableHLO",
        "installs packages",
    ],
}
"""The blocks that are not run: of each page, the reasons that it gives, in order."""


@pytest.mark.parametrize("page", sample(NAMES, one_in=9))
def test_the_code_blocks_of_a_page_run(page: str, tmp_path: Path):
    for name in ("bench", "examples"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    environment = forked_commands.environment() | {"COLUMNS": "80"}
    done = forked_commands.run([RUNNER, CHECKOUT / page], cwd=tmp_path, env=environment)
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
    done = forked_commands.run([RUNNER, page])
    assert done.returncode == 1
    assert problem in done.stdout + done.stderr


def test_blocks_of_a_page_share_their_names_and_count_their_lines(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```python\nimport sys\nprint(x, sys._getframe().f_lineno, __name__)\n```\n\n"
        '```text\n1 4 __main__\n```\n\n```python title="not run: it fails"\n1 / 0\n```\n'
    )
    done = forked_commands.run([RUNNER, page])
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


LIST_OF_FILES = re.compile(r"^\|[^|]*\| `((?:sdy|passes)/[^`]+)` \|", re.MULTILINE)
NAMES_OF_OPERATIONS = {operation.name.partition(".")[2] for operation in STABLEHLO.operations}


def mentions_reverse(file: Path) -> bool:
    """Return whether a file has the operation's class, or a text with its name, alone or among operation names."""
    text = file.read_text()
    if "reverse" not in text.lower():
        return False
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
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


def test_the_reference_has_every_pass_and_its_file():
    page = passes_page.page()
    assert re.findall("^### (.*)$", page, re.MULTILINE) != []
    assert set(re.findall("^### (.*)$", page, re.MULTILINE)) == set(PASSES)
    files = re.findall(r"^`(passes/.*\.py)`$", page, re.MULTILINE)
    assert len(files) == len(PASSES)
    assert all((CHECKOUT / file).is_file() for file in files)


def test_every_pass_but_pipelines_shows_a_program_before_and_after():
    page = passes_page.page()
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    without = [name for name, text in sections.items() if text.count("```mlir") + text.count("After") < 2]
    pipelines = [name for name in PASSES if name.endswith("-pipeline")]
    assert sorted(without) == sorted([*pipelines, "sdy-save-module"])


def test_the_reference_of_lint_has_every_rule_and_its_file():
    page = lint_page.page()
    assert re.findall("^## (.*)$", page, re.MULTILINE) == [*RULES]
    files = re.findall(r"^`(passes/.*\.py)`$", page, re.MULTILINE)
    assert [(CHECKOUT / file).is_file() for file in files] == [True] * len(RULES)
    assert page.count("```python\n") == 2 * len(RULES)


def test_the_reference_has_every_name_of_the_package():
    page = (DOCS / "reference/api.md").read_text()
    documented = set(re.findall(r"^::: sdy\.(\w+)$", page, re.MULTILINE))
    public = [name for name in dir(sdy) if not name.startswith("_")]
    assert documented == {name for name in public if getattr(getattr(sdy, name), "__module__", "").startswith("sdy.")}
