"""The style of docstrings, comments, messages and pages, as far as a machine can check it.

`python tests/project/test_style.py SEED` prints twenty public docstrings at random, for a reader to judge.
"""

import ast
import random
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import cast

import pytest

CHECKOUT = Path(__file__).parents[2]
FOLDERS = (".ci", "sdy", "passes", "tools", "bench", "examples", "tests", "docs")
PAGES = [*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")]
COMMENTED = (".ci/run", "CMakeLists.txt", "mkdocs.yml", "pyproject.toml", "passes/**/*.toml", "lit_tests/**/*.mlir")
"""Other files with comments, which begin with `#` or `//`."""
README_LINES = 150

FIRST_WORD = re.compile(r"(What|Which|How|Whether|Where|Those|That|Such|Who|Whoever)\b(?!-)|As `")
"""Beginnings of docstrings that avoid the verb of a function and the noun of a class."""

SENTENCE = re.compile(
    r"(^|(?<=[.!?;:]\s))(What|Those|That|Such|Whoever)\b(?![^.]*\?)|(^|(?<=[.!?]\s))As `", re.MULTILINE
)
PHRASE = re.compile(
    r"\b((is|are|was|were|be) told|made (anew|whole)|by itself|so many|there is none|as it is|of which|hears? from|"
    r"at hand|whoever|to begin with)\b",
    re.IGNORECASE,
)


def python_files(folder: str) -> Iterator[Path]:
    """Yield the sources of a folder; `sdy/passes` and `sdy/tools` are links to folders that are listed themselves."""
    for file in sorted((CHECKOUT / folder).rglob("*.py")):
        if file.relative_to(CHECKOUT).parts[:2] not in {("sdy", "passes"), ("sdy", "tools")}:
            yield file


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, in half the time of `ast.walk`."""
    nodes = [tree]
    for node in nodes:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += (each for each in cast(list[object], value) if isinstance(each, ast.AST))
            elif isinstance(value, ast.AST):
                nodes.append(value)
    return nodes


def docstrings(nodes: Iterable[ast.AST]) -> dict[ast.Constant, ast.AST]:
    """Return the docstrings of modules, classes, functions and attributes, each with the node around it."""
    return {
        statement.value: node
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.If)
        for statement in node.body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    }


def comments(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments with their first lines; consecutive lines are one comment."""
    if "#" not in file.read_text():
        return
    with file.open("rb") as lines:
        found = [token for token in tokenize.tokenize(lines.readline) if token.type == tokenize.COMMENT]
    for _, block in groupby(enumerate(found), key=lambda item: item[1].start[0] - item[0]):
        tokens = [token for _, token in block]
        yield tokens[0].start[0], " ".join(token.string.lstrip("#: ") for token in tokens)


def problems(text: str, place: str) -> Iterator[str]:
    """Yield the sentences and phrases of `text` that STYLE rules out, each after `place`."""
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        for found in [*SENTENCE.finditer(line), *PHRASE.finditer(line)]:
            yield f"{place}: {line[max(0, found.start() - 40) : found.end() + 40]}"


def problems_of_file(file: Path) -> Iterator[str]:
    nodes = nodes_of(ast.parse(file.read_text()))
    documented = docstrings(nodes)
    place = file.relative_to(CHECKOUT)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in documented:
                if FIRST_WORD.match(node.value):
                    yield f"{place}:{node.lineno}: {node.value[:80]}"
                yield from problems(node.value, f"{place}:{node.lineno}")
            elif found := PHRASE.search(node.value):
                yield f"{place}:{node.lineno}: {found[0]}"
    for line, text in comments(file):
        yield from problems(text, f"{place}:{line}")


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_comments_and_messages_use_the_words_of_the_field(folder: str) -> None:
    found = [problem for file in python_files(folder) if file != Path(__file__) for problem in problems_of_file(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    prose = re.sub(r"```.*?```|^#.*?$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = list(problems(re.sub(r"^[-*|>] ?", "", prose, flags=re.MULTILINE), page.name))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("pattern", COMMENTED)
def test_comments_of_other_files_use_the_words_of_the_field(pattern: str) -> None:
    files = list(CHECKOUT.glob(pattern))
    text = {file: re.findall(r"(?:#|//) (.*)", file.read_text()) for file in files}
    found = [problem for file, lines in text.items() for line in lines for problem in problems(line, file.name)]
    assert files
    assert not found, "\n".join(found)


def test_the_readme_is_short() -> None:
    assert len((CHECKOUT / "README.md").read_text().splitlines()) <= README_LINES


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Return the sharding.", 0),
        ("The sharding. What it is.", 1),
        ("What is a factor? An index.", 0),
        ("The sharding is told to it.", 1),
        ("As `x` is.\n\nSuch values.", 2),
    ],
)
def test_problems_are_found(text: str, count: int) -> None:
    assert len([*problems(text, "here")]) == count


def main(seed: int) -> None:
    public = [
        (f"{file.relative_to(CHECKOUT)}:{node.lineno}", ast.get_docstring(node))
        for folder in ("sdy", "passes", "tools")
        for file in python_files(folder)
        for node in docstrings(ast.walk(ast.parse(file.read_text()))).values()
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    for place, text in random.Random(seed).sample(public, 20):
        print(f"{place}\n    {text}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
