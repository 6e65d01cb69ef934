"""Output formats of lint: text, JSON, and GitHub workflow commands."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sdy.diagnostics import Location, Severity
from sdy.formatting import escape_line, escape_lines
from sdy.passes.account.lint.findings import Finding, Findings

_GITHUB = {Severity.WARNING: "warning", Severity.REMARK: "notice"}
"""The workflow command of each severity."""


def text(findings: Findings) -> str:
    """Format findings as compiler diagnostics, with a summary line at the end."""
    return f"{findings.in_command}\n"


def as_json(findings: Findings) -> str:
    """Format findings as a JSON object with the keys `version`, `findings`, `bytes_received` and `bytes_held`."""
    document = {
        "version": 1,
        "findings": [_entry(each) for each in findings],
        "bytes_received": round(findings.received),
        "bytes_held": findings.held,
    }
    return json.dumps(document, indent=1) + "\n"


def _entry(finding: Finding) -> Mapping[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        **_place(finding.where),
        "message": finding.message,
        "cure": finding.cure,
        "edits": [*finding.edits],
        "bytes_received": round(finding.received),
        "bytes_held": finding.held,
        "more_like_it": finding.like,
        "others": [*finding.others],
        "removes": [{"rule": each.rule, **_place(each.where), "message": each.message} for each in finding.removes],
        "reasons": [{**_place(reason.location), "message": reason.message} for reason in finding.reasons],
    }


def _place(where: Location | None) -> Mapping[str, Any]:
    if where is None:
        return {"file": None, "line": None, "column": None}
    return {"file": where.filename, "line": where.line, "column": where.column}


def github(findings: Findings) -> str:
    """Format findings as GitHub workflow commands, which annotate the lines of a change."""
    return "".join(f"{_command(each)}\n" for each in findings)


def _command(finding: Finding) -> str:
    where = finding.where
    place = {"file": where.filename, "line": where.line, "col": where.column} if where else {}
    properties = {**place, "title": f"sdy-lint {finding.rule}"}
    parameters = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    notes = [note.message for note in finding.diagnostic.notes]
    message = _escaped(escape_lines("\n".join([finding.message, *notes])))
    return f"::{_GITHUB[finding.severity]} {parameters}::{message}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(escape_line(text)).replace(":", "%3A").replace(",", "%2C")


FORMATS: Mapping[str, Callable[[Findings], str]] = {"text": text, "json": as_json, "github": github}
"""The formatters by name."""
