"""The HTML file of a report: its data as JSON, with style and scripts embedded, without external resources."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from sdy.passes.account.report.numbering import Json

_FOLDER = Path(__file__).with_name("page")

_SCRIPTS = (
    "data.js",
    "elements.js",
    "sizes.js",
    "address.js",
    "list.js",
    "mesh_picture.js",
    "source.js",
    "reasons.js",
    "details.js",
    "findings.js",
    "collectives.js",
    "memory.js",
    "arrays.js",
    "program.js",
    "timeline.js",
    "time.js",
    "python.js",
    "page.js",
)
"""The scripts, each after those that it depends on."""

GENERATOR = '<meta name="generator" content="sdy-report">'
"""The tag that identifies a file as a report."""


def page(title: str, found: Json) -> str:
    """Return the HTML of a report.

    Names in a module are arbitrary text. Each `<` in the data is escaped, and the content security policy permits only
    the embedded scripts.
    """
    script = "".join(_asset(name) for name in _SCRIPTS)
    parts = {
        "generator": GENERATOR,
        "script-hash": _hash(script),
        "title": escape(title),
        "style": _asset("style.css"),
        "data": json.dumps(found, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "script": script,
    }
    return filled("page.html", parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """Return the file `template` with each name in double braces replaced by the part of this name."""
    return re.sub(r"\{\{([\w-]+)\}\}", lambda match: parts[match[1]], _asset(template))


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
