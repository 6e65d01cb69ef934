"""The reference of the rules of lint, made from their docstrings when the documentation is built."""

import re
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING

from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.rule import Rule

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGE = "reference/lint.md"

START = """\
# Rules of lint

What each rule of `sdy-lint` finds, and what to write instead; `sdy-lint --explain RULE` shows the same.
[How lint is used](../guides/lint.md) is a page of its own.
"""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Called by MkDocs: add the page to those that are built."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The text of the page."""
    return "\n".join([START, *map(_section, RULES.values())])


def _section(rule: Rule) -> str:
    parts = groupby(rule.text.split("\n\n"), key=lambda paragraph: paragraph.startswith("    "))
    page = [_part("\n\n".join(paragraphs), is_code) for is_code, paragraphs in parts]
    return "\n\n".join([f"## {rule.name}", *page, f"Told from `--{rule.least}` on.", f"`{rule.file}`", ""])


def _part(text: str, is_code: bool) -> str:
    return f"```python\n{dedent(text)}\n```" if is_code else re.sub("::$", ":", text, flags=re.MULTILINE)
