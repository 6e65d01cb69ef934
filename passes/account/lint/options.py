"""Options of lint: selected rules, thresholds and suppressions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, fields, replace

from sdy.diagnostics import DiagnosticError, Location, error
from sdy.formatting import parse_bytes
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
        large: Instead of that of `thresholds`: bytes, or a size such as `"16K"`.
        replicated: Instead of that of `thresholds`.
        small: Instead of that of `thresholds`.
        many: Instead of that of `thresholds`.

    Raises:
        DiagnosticError: A name is not that of a rule, or a threshold is no size.
    """

    select: Collection[str] = ()
    ignore: Collection[str] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)
    allow: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    large: InitVar[int | str | None] = None
    replicated: InitVar[int | str | None] = None
    small: InitVar[int | str | None] = None
    many: InitVar[int | str | None] = None

    def __post_init__(
        self, large: int | str | None, replicated: int | str | None, small: int | str | None, many: int | str | None
    ) -> None:
        given = {"large": large, "replicated": replicated, "small": small, "many": many}
        sizes = {name: threshold(name, value, None) for name, value in given.items() if value is not None}
        object.__setattr__(self, "thresholds", replace(self.thresholds, **sizes))
        for names in (self.select, self.ignore, *self.allow.values()):
            check_names(names)

    @property
    def rules(self) -> list[Rule]:
        """The rules to report."""
        return [
            rule for name, rule in RULES.items() if name not in self.ignore and (not self.select or name in self.select)
        ]


OPTIONS = {each.name: f"lint_options=sdy.LintOptions({each.name}=...)" for each in fields(LintOptions)} | {
    name: f"lint_options=sdy.LintOptions({name}=...)" for name in ("large", "replicated", "small", "many")
}
"""The argument of `sdy.lint` for each option of lint."""


def threshold(name: str, value: object, where: Location | None) -> int:
    """Parse the value of threshold `name`: a number, or a size such as `"80M"`.

    Raises:
        DiagnosticError: The value is neither.
    """
    try:
        return parse_bytes(str(value))
    except ValueError as problem:
        raise error(where, f"{name}: {problem}") from None


def check_names(names: Iterable[str], where: Location | None = None) -> None:
    """Raise DiagnosticError for a name that is not that of a rule."""
    for name in names:
        if name not in RULES:
            raise unknown("rule", name, RULES, where)


def unknown(kind: str, name: str, known: Iterable[str], where: Location | None = None) -> DiagnosticError:
    """Return the error for an unknown name, with the most similar known one as a suggestion."""
    suggestion = nearest(name, list(known))
    return error(where, f"unknown {kind} '{name}'" + (f": did you mean '{suggestion}'?" if suggestion else ""))
