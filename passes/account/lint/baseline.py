"""Baselines: known findings stored in a file, so that lint reports only new ones."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sdy.diagnostics import Location, error
from sdy.passes.account.lint.findings import Findings
from sdy.passes.driver import Source
from sdy.type_helpers import is_dict, is_list

_VERSION = 1
_KEY_FIELDS = ("rule", "file", "what")

Key = tuple[str, str, str]
"""Rule, file and problem of a finding; not its line, which changes with edits."""


@dataclass(frozen=True)
class Baseline:
    """Number of occurrences of each known finding."""

    counts: Mapping[Key, int]

    @classmethod
    def of(cls, findings: Findings) -> "Baseline":
        """Count the occurrences of `findings`."""
        counts = Counter[Key]()
        for finding in findings:
            counts[finding.key] += 1 + finding.like
        return cls(counts)

    @classmethod
    def read(cls, source: Source) -> "Baseline":
        """Parse a baseline file.

        Raises:
            DiagnosticError: The file is not a baseline.
        """
        try:
            content: object = json.loads(source.text)
        except json.JSONDecodeError as problem:
            place = Location(source.name, problem.lineno, problem.colno)
            raise error(place, f"invalid JSON: {problem.msg}") from None
        entries = content.get("findings") if is_dict(content) and content.get("version") == _VERSION else None
        if not is_list(entries):
            raise error(Location(source.name, 1, 1), "not an sdy-lint baseline: write one with --write-baseline")
        return cls(dict(_entry(entry, source) for entry in entries))

    @property
    def text(self) -> str:
        """The baseline as the text of a file, with one line per entry."""
        entries = [
            {**dict(zip(_KEY_FIELDS, key, strict=True)), "count": self.counts[key]} for key in sorted(self.counts)
        ]
        lines = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        body = f"[\n  {lines}\n ]" if entries else "[]"
        return f'{{\n "version": {_VERSION},\n "findings": {body}\n}}\n'

    def new(self, findings: Findings) -> Findings:
        """Return the findings that occur more often than in the baseline."""
        counts = Baseline.of(findings).counts
        new = [each for each in findings if counts[each.key] > self.counts.get(each.key, 0)]
        return replace(findings, findings=new)


def _entry(entry: object, source: Source) -> tuple[Key, int]:
    key = [entry.get(name) for name in _KEY_FIELDS] if is_dict(entry) else []
    count = entry.get("count") if is_dict(entry) else None
    if len(key) != len(_KEY_FIELDS) or not all(isinstance(value, str) for value in key) or type(count) is not int:
        raise error(Location(source.name, 1, 1), f"a baseline entry must have {', '.join(_KEY_FIELDS)} and count")
    rule, file, what = map(str, key)
    return (rule, file, what), count
