"""Look up the tensors of a source line: `tr.py:18`, `tr.py:18:16` with a column, or `18` in any file."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import Location, error, location_of
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape
from sdy.ir.walking import operations

_PLACE = re.compile(r"(?:([^@].*\D|\D):)?(\d+)(?::(\d+))?")

_MOST_LINES = 5
"""Number of lines that an error lists."""


@dataclass(frozen=True)
class SourceLine:
    """A source line as a person writes it; None for any file or column."""

    file: str | None
    line: int
    column: int | None

    @classmethod
    def parse(cls, text: str) -> "SourceLine | None":
        """Return the line that `text` denotes, or None if it denotes none, such as `%12`."""
        match = _PLACE.fullmatch(text)
        return match and cls(match[1], int(match[2]), int(match[3]) if match[3] else None)

    def __str__(self) -> str:
        position = str(self.line) if self.column is None else f"{self.line}:{self.column}"
        return f"line {position}" if self.file is None else f"{self.file}:{position}"

    def tensors(self, module: ModuleOp) -> list[SSAValue]:
        """Return the tensors that operations of the line compute, then those that they use.

        Of several tensors of one type and sharding, such as those of equal layers, only the first is returned. Scalars
        are left out if there are other tensors.

        Raises:
            DiagnosticError: No operation is at the line; the message lists the nearest lines.
        """
        placed = [(op, where) for op in operations(module) if op.results and (where := location_of(op)) and where.line]
        found = [op for op, where in placed if self._is_at(where)]
        computed = _one_of_each(result for op in found for result in op.results)
        used = _one_of_each(operand for op in found for operand in op.operands)
        values = _one_of_each((*computed, *used))
        if not values:
            raise error(module, f"no tensor is computed at {self}: {self._nearest(placed)}")
        return [value for value in values if shape(value.type)] or values

    def _is_in_file(self, where: Location) -> bool:
        return self.file is None or where.filename == self.file or where.filename.endswith(f"/{self.file}")

    def _is_at(self, where: Location) -> bool:
        return self._is_in_file(where) and self.line == where.line and self.column in (None, where.column)

    def _nearest(self, placed: Iterable[tuple[Operation, Location]]) -> str:
        """Format the lines, or the columns or files, that operations are at."""
        places = [where for _, where in placed]
        in_file = [where for where in places if self._is_in_file(where)]
        if not in_file:
            files = dict.fromkeys(where.filename for where in places)
            return f"its operations are in {_listed(files)}" if files else "its operations have no source lines"
        if columns := sorted({where.column for where in in_file if where.line == self.line}):
            return f"operations of this line are at column {_listed(columns)}"
        nearest = sorted({where.line for where in in_file}, key=lambda line: (abs(line - self.line), line))
        return f"the nearest lines with operations are {_listed(sorted(nearest[:_MOST_LINES]))}"


def _one_of_each(values: Iterable[SSAValue]) -> list[SSAValue]:
    """Return the first tensor of each type and sharding."""
    first: dict[object, SSAValue] = {}
    for value in values:
        if is_static_tensor(value.type):
            first.setdefault((value.type, get_sharding(value)), value)
    return [*first.values()]


def _listed(names: Iterable[object]) -> str:
    every = [*map(str, names)]
    more = ", ..." if len(every) > _MOST_LINES else ""
    return ", ".join(every[:_MOST_LINES]) + more
