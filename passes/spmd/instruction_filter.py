"""Filter of operations by name and number, written as `dot, pad`, `selectLow=3, selectHigh=10`, or both."""

from dataclasses import dataclass

from sdy.diagnostics import error


@dataclass(frozen=True)
class InstructionFilter:
    """Selects the operations numbered `low` to `high` whose names contain one of `words`, or any name if empty."""

    words: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None

    @classmethod
    def parse(cls, text: str) -> "InstructionFilter":
        """Parse a comma-separated list of names and bounds, in any order.

        Raises:
            DiagnosticError: A bound is not a number, or an option is unknown.
        """
        words: list[str] = []
        bounds: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, equals, number = part.partition("=")
            if not equals:
                words.append(part)
            elif name not in ("selectLow", "selectHigh") or not number.strip().isdecimal():
                raise error(None, f"invalid operation filter '{part}': expected selectLow=N, selectHigh=N or a name")
            else:
                bounds[name] = int(number)
        return cls(tuple(words), bounds.get("selectLow", 0), bounds.get("selectHigh"))

    def includes(self, name: str, number: int) -> bool:
        """Return whether the filter selects the operation of this name and number."""
        in_range = self.low <= number and (self.high is None or number <= self.high)
        return in_range and (not self.words or any(word in name for word in self.words))
