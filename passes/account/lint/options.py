"""Options of lint: selected rules, thresholds and suppressions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sdy.diagnostics import DiagnosticError, Location, error
from sdy.passes.account.lint.catalog import RULES, Rule
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.options import nearest


@dataclass(frozen=True)
class LintOptions:
    """Selected rules, thresholds and suppressions of a lint run.

    Args:
        select: Names of the rules to report; all if empty.
        ignore: Names of rules not to report, even if selected.
        thresholds: Minimum costs of findings.
        allow: Names of rules to suppress by file pattern, such as `"layers/*.py"`.

    Raises:
        DiagnosticError: A name is not that of a rule.
    """

    select: Collection[str] = ()
    ignore: Collection[str] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)
    allow: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    def __post_init__(self) -> None:
        for names in (self.select, self.ignore, *self.allow.values()):
            check_names(names)

    @property
    def rules(self) -> list[Rule]:
        """The rules to report."""
        return [
            rule for name, rule in RULES.items() if name not in self.ignore and (not self.select or name in self.select)
        ]


def check_names(names: Iterable[str], where: Location | None = None) -> None:
    """Raise DiagnosticError for a name that is not that of a rule."""
    for name in names:
        if name not in RULES:
            raise unknown("rule", name, RULES, where)


def unknown(kind: str, name: str, known: Iterable[str], where: Location | None = None) -> DiagnosticError:
    """Return the error for an unknown name, with the most similar known one as a suggestion."""
    suggestion = nearest(name, list(known))
    return error(where, f"unknown {kind} '{name}'" + (f": did you mean '{suggestion}'?" if suggestion else ""))
