"""The file: what was found out, as JSON, with the style and the scripts that show it, and nothing from elsewhere."""

import base64
import hashlib
import json
import re
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
    "collectives.js",
    "memory.js",
    "arrays.js",
    "program.js",
    "time.js",
    "page.js",
)
"""In the order in which they need each other."""

GENERATOR = '<meta name="generator" content="sdy-report">'
"""What a file that is a report has near its beginning."""


def page(title: str, found: Json) -> str:
    """The text of the file.

    The data hold names from a module, which may hold anything: no `<` of theirs is one to a browser, and scripts other
    than these do not run.
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
    return re.sub(r"\{\{([\w-]+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
