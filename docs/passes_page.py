"""The reference of the passes, made from their docstrings when the documentation is built."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.passes.catalog import PASSES
from sdy.passes.pipelines import Pipeline

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGE = "reference/passes.md"

FOLDERS = (
    "pipelines",
    "importing",
    "auto",
    "propagation",
    "exporting",
    "partitioning",
    "communication",
    "for_xla",
    "operators",
    "blocks",
    "common",
)
"""In the order in which a program goes through them."""

START = """\
# Passes

Each pass by the folder that its file is in; `sdy-opt --PASS FILE` runs one. Options follow an equals sign, and those
that are yes or no need no value: `sdy-opt --sdy-convert-global-to-local='compute-whole replica-count=1' FILE`. In
Python a pass is its class, and its options are fields, with underscores.
"""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Called by MkDocs: add the page to those that are built."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The text of the page."""
    classes = sorted(
        ((name, load()) for name, load in PASSES.items()), key=lambda each: FOLDERS.index(_folder(each[1]))
    )
    return "\n".join([START, *_sections(classes)])


def _sections(classes: list[tuple[str, type[ModulePass]]]) -> Iterator[str]:
    for folder, members in groupby(classes, key=lambda each: _folder(each[1])):
        yield f"## {folder}\n"
        for name, pass_class in members:
            parts = (_described(pass_class), _steps(pass_class), _options(pass_class), f"`{_file(pass_class)}`")
            yield "\n\n".join([f"### {name}", *filter(None, parts), ""])


def _file(pass_class: type[ModulePass]) -> str:
    """The file of a pass in the checkout."""
    return pass_class.__module__.removeprefix("sdy.").replace(".", "/") + ".py"


def _folder(pass_class: type[ModulePass]) -> str:
    return "pipelines" if (folder := _file(pass_class).split("/")[1]) == "pipelines.py" else folder


def _described(pass_class: type[ModulePass]) -> str:
    """The docstring, the programs in it fenced."""
    paragraphs = re.split(r"\n{2,}(?! )|\n{2,}(?=    )", inspect.cleandoc(pass_class.__doc__ or ""))
    return "\n\n".join(map(_paragraph, paragraphs))


def _paragraph(text: str) -> str:
    return f"```mlir\n{dedent(text)}\n```" if text.startswith("    ") else re.sub("::$", ":", text)


def _steps(pass_class: type[ModulePass]) -> str:
    """Return the passes that a pipeline runs by default; empty for other passes."""
    if not issubclass(pass_class, Pipeline):
        return ""
    return "Without options it runs: " + ", ".join(f"`{step.name}`" for step in pass_class().passes(ModuleOp([]))) + "."


def _options(pass_class: type[ModulePass]) -> str:
    """A table of the options; nothing where there are none."""
    types = get_type_hints(pass_class)
    rows = [
        f"| `{field.name.replace('_', '-')}` | {_values(types[field.name])} | {_shown(field.default)} |"
        for field in dataclasses.fields(pass_class)
    ]
    return "\n".join(["| option | value | default |", "|---|---|---|", *rows]) if rows else ""


def _values(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(kind))
    return {bool: "true or false", int: "a number", str: "text"}.get(kind, "names, between commas")


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    return f"`{default}`" if default not in ("", ()) else "none"
