"""What lint looks for, and what it is not to tell."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sdy.diagnostics import DiagnosticError, Location, error
from sdy.passes.account.lint.catalog import RULES
from sdy.passes.account.lint.rule import Rule
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.options import nearest


@dataclass(frozen=True)
class LintOptions:
    """Which rules are asked, from where on something counts, and where what is allowed.

    Args:
        select: the names of rules, all where there are none.
        ignore: the names of rules that are not asked, also of those.
        thresholds: bytes and numbers from which on something is told.
        allow: patterns of file names, such as `"layers/*.py"`, and the names of rules that may find there what they do.

    Raises:
        DiagnosticError: there is no rule of such a name.
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
        """The rules that are asked."""
        return [
            rule for name, rule in RULES.items() if name not in self.ignore and (not self.select or name in self.select)
        ]


def check_names(names: Iterable[str], where: Location | None = None) -> None:
    """Raises DiagnosticError for a name that no rule has."""
    for name in names:
        if name not in RULES:
            raise unknown("rule", name, RULES, where)


def unknown(kind: str, name: str, known: Iterable[str], where: Location | None = None) -> DiagnosticError:
    """The error for a name that is not among `known`, with the nearest one that is."""
    found = nearest(name, list(known))
    return error(where, f"there is no {kind} '{name}'" + (f": did you mean '{found}'?" if found else ""))
