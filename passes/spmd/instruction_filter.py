"""Which operations a person asks for, in words: `dot, pad`, or `selectLow=3, selectHigh=10`, or both."""

from dataclasses import dataclass

from sdy.diagnostics import error


@dataclass(frozen=True)
class InstructionFilter:
    """Operations whose name contains one of `words`, if there are any, and whose number is from `low` to `high`."""

    words: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None

    @classmethod
    def parse(cls, text: str) -> "InstructionFilter":
        """Read a list separated by commas, in any order. Raises DiagnosticError where a bound is no number."""
        words: list[str] = []
        bounds: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, equals, number = part.partition("=")
            if not equals:
                words.append(part)
            elif name not in ("selectLow", "selectHigh") or not number.strip().isdecimal():
                raise error(None, f"not a filter of operations: '{part}': write selectLow=N, selectHigh=N or a name")
            else:
                bounds[name] = int(number)
        return cls(tuple(words), bounds.get("selectLow", 0), bounds.get("selectHigh"))

    def includes(self, name: str, number: int) -> bool:
        """Whether the operation of this name and number is asked for."""
        in_range = self.low <= number and (self.high is None or number <= self.high)
        return in_range and (not self.words or any(word in name for word in self.words))
