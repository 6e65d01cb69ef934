"""Generator of the reference page of lint rules, from their docstrings, for MkDocs."""

import re
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING

from sdy.passes.account.lint.catalog import RULES, Rule

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGE = "reference/lint.md"

START = """\
# Lint rules

The patterns that `sdy-lint` reports, each with a program before and after the fix; `sdy-lint --explain RULE` shows the
same page. The [lint guide](../guides/lint.md) describes the options.
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
    return "\n\n".join([f"## {rule.name}", *page, f"Threshold: `--{rule.least}`.", f"`{rule.file}`", ""])


def _part(text: str, is_code: bool) -> str:
    return f"```python\n{dedent(text)}\n```" if is_code else re.sub("::$", ":", text, flags=re.MULTILINE)
