"""What was found before and is to be borne: kept as a file, so that only what is new is told."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sdy.diagnostics import Location, error
from sdy.narrowing import is_dict, is_list
from sdy.passes.account.lint.findings import Findings
from sdy.passes.driver import Source

_VERSION = 1
_WORDS = ("rule", "file", "what")

Key = tuple[str, str, str]
"""The rule, the file, and what is wrong; lines are not in it, as they move."""


@dataclass(frozen=True)
class Baseline:
    """How often each was found."""

    counts: Mapping[Key, int]

    @classmethod
    def of(cls, findings: Findings) -> "Baseline":
        """What was found now."""
        counts = Counter[Key]()
        for finding in findings:
            counts[finding.key] += 1 + finding.like
        return cls(counts)

    @classmethod
    def read(cls, source: Source) -> "Baseline":
        """What a file keeps. Raises DiagnosticError where it is another file."""
        try:
            kept: object = json.loads(source.text)
        except json.JSONDecodeError as problem:
            place = Location(source.name, problem.lineno, problem.colno)
            raise error(place, f"this is no JSON: {problem.msg}") from None
        entries = kept.get("findings") if is_dict(kept) and kept.get("version") == _VERSION else None
        if not is_list(entries):
            raise error(Location(source.name, 1, 1), "this is no baseline of sdy-lint: write one with --write-baseline")
        return cls(dict(_entry(entry, source) for entry in entries))

    @property
    def text(self) -> str:
        """The file that keeps it, a line for each entry."""
        entries = [{**dict(zip(_WORDS, key, strict=True)), "count": self.counts[key]} for key in sorted(self.counts)]
        lines = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        body = f"[\n  {lines}\n ]" if entries else "[]"
        return f'{{\n "version": {_VERSION},\n "findings": {body}\n}}\n'

    def new(self, findings: Findings) -> Findings:
        """Those of the findings that are not in it, or not as often."""
        now = Baseline.of(findings).counts
        return Findings([each for each in findings if now[each.key] > self.counts.get(each.key, 0)])


def _entry(entry: object, source: Source) -> tuple[Key, int]:
    words = [entry.get(word) for word in _WORDS] if is_dict(entry) else []
    count = entry.get("count") if is_dict(entry) else None
    if len(words) != len(_WORDS) or not all(isinstance(word, str) for word in words) or type(count) is not int:
        raise error(Location(source.name, 1, 1), f"an entry of a baseline has {', '.join(_WORDS)} and count")
    rule, file, what = map(str, words)
    return (rule, file, what), count
