"""Code blocks of a page, run in order and compared with the output that the page shows.

    python tests/support/doc_blocks.py docs/tutorial.md

    python    run, all of a page in one process and one namespace, as the lines of one file named like the page
    text      the output of the block before it
    console   lines that begin with `$ ` are run by a shell, the others are their output, errors included
    sh        run by a shell
    mlir      parsed and verified
    toml      parsed

In expected output, `...` matches anything. A block whose title is `not run: REASON` is skipped.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

import fork_server

_NOT_RUN = re.compile(r'title="not run: ([^"]+)"')
_HOW = doctest.ELLIPSIS | doctest.REPORT_NDIFF


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its position, its language, the reason for which it is not run, and its text."""

    place: str
    language: str
    not_run: str | None
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Return the fenced blocks of a page, in order. Raises on indented blocks, which nothing would run."""
    for token in MarkdownIt().parse(page.read_text()):
        place = f"{page.name}:{token.map[0] + 1 if token.map else '?'}"
        if token.type == "code_block":
            raise ValueError(f"{place}: a block of code that is indented: put it between ``` lines")
        if token.type == "fence":
            reason = _NOT_RUN.search(token.info)
            yield Block(place, token.info.split()[0] if token.info else "", reason and reason[1], token.content)


def run(page: Path) -> Iterator[str]:
    """Run the blocks of a page in this process and return the problems as messages."""
    runner = _Runner(page.stem)
    for block in blocks(page):
        if not block.not_run:
            runner.run(block)
            for problem in runner.problems:
                yield f"{block.place}: {problem}"
            runner.problems.clear()


class _Runner:
    def __init__(self, name: str):
        self.problems: list[str] = []
        self._printed: str | None = None
        self._name = f"{name}.py"
        self._lines = 0
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> None:
        """Run a block, and append its problems to `problems`."""
        languages: dict[str, Callable[[str], object]] = {
            "python": self._python,
            "text": self._text,
            "console": self._console,
            "sh": self._shell,
            "mlir": self._mlir,
            "toml": tomllib.loads,
        }
        if block.language in languages:
            languages[block.language](block.text)
        else:
            self.problems.append(f"a block of '{block.language}' is not run: {', '.join(languages)} are")
        if block.language != "python":
            self._printed = None

    def _python(self, text: str) -> None:
        code = compile("\n" * self._lines + text, self._name, "exec")
        self._lines += text.count("\n") + 1
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self._names)
        self._printed = printed.getvalue()

    def _text(self, text: str) -> None:
        if self._printed is None:
            self.problems.append("no block of Python is before this output")
        else:
            self._compare(text, self._printed)

    def _console(self, text: str) -> None:
        for command, shown in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            self._compare(shown, self._shell(command, fails="error: " in shown))

    def _shell(self, command: str, fails: bool = False) -> str:
        done = subprocess.run(
            ["bash", "-ec", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if (done.returncode != 0) != fails:
            self.problems.append(f"`{command}` exits with {done.returncode}:\n{done.stdout[-2000:]}")
        return done.stdout

    def _mlir(self, text: str) -> None:
        import sdy

        sdy.parse(text)

    def _compare(self, shown: str, printed: str) -> None:
        # A page renders no trailing spaces and no empty line at the end.
        shown, printed = ("\n".join(map(str.rstrip, each.strip("\n").splitlines())) + "\n" for each in (shown, printed))
        if not doctest.OutputChecker().check_output(shown, printed, _HOW):
            wanted = doctest.Example("", shown)
            self.problems.append(doctest.OutputChecker().output_difference(wanted, printed, _HOW))


if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if fork_server.ADDRESS not in os.environ:  # else its commands come first
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = list(run(Path(sys.argv[1]).resolve()))
    print(*found, sep="\n")
    sys.exit(bool(found))
