"""Listing of the operations and tensors of the unpartitioned program, which the rest of the report refers to."""

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.dialect.shardings import get_sharding
from sdy.formatting import escape_line
from sdy.ir.walking import operations
from sdy.passes.account.report.numbering import NONE, Json, Numbering, Numbers
from sdy.passes.common.call_graph import functions
from sdy.passes.common.repeats import repeats
from sdy.passes.propagation.provenance.present_names import PresentNames


class Listing:
    """Rows (one per operation) and tensors of a module, numbered in program order."""

    def __init__(self, module: ModuleOp, names: PresentNames, numbers: Numbers) -> None:
        self._names = names
        self._numbers = numbers
        self._functions = functions(module)
        self.rows: Sequence[Operation] = [op for function in self._functions for op in operations(function)]
        self._numbers_of_rows = {op: number for number, op in enumerate(self.rows)}
        self._values = [value for op in self.rows for value in _values_of(op)]
        self._numbers_of_values = {value: number for number, value in enumerate(self._values)}
        self.first_alike: dict[Operation, Operation] = {}
        """For each operation in a repeated layer, its counterpart in the first such layer; filled by `as_json`."""

    def row(self, op: Operation | None) -> int:
        """Return the row number of an operation."""
        return NONE if op is None else self._numbers_of_rows.get(op, NONE)

    def value(self, value: SSAValue | None) -> int:
        """Return the number of a tensor."""
        return NONE if value is None else self._numbers_of_values.get(value, NONE)

    @property
    def values(self) -> Sequence[SSAValue]:
        """The tensors, ordered by number."""
        return self._values

    def as_json(self) -> Json:
        """Serialize rows and tensors by column, and the repeated rows."""
        folds = [fold for function in self._functions for fold in self._folds(function)]
        numbers = self._numbers
        return {
            "rows": {
                "op": [numbers.string(op.name) for op in self.rows],
                "what": [numbers.string(_what(op)) for op in self.rows],
                "scope": [numbers.string(_scope(op)) for op in self.rows],
                "place": [numbers.place(op) for op in self.rows],
                "nested": [len(operations(op)) - 1 if op.regions else 0 for op in self.rows],
                "results": [[self._numbers_of_values[result] for result in op.results] for op in self.rows],
                "operands": [[self._numbers_of_values[operand] for operand in op.operands] for op in self.rows],
            },
            "values": {
                "name": [escape_line(self._names.of_value(value)) for value in self._values],
                "tensor": [numbers.tensor(value.type, get_sharding(value)) for value in self._values],
                "row": [self.row(_owner(value)) for value in self._values],
            },
            "folds": folds,
        }

    def _folds(self, root: Operation) -> Iterator[tuple[int, int, int]]:
        """Yield the repetitions in `root`: the first row, the rows per layer and the number of layers."""
        signatures = Numbering[object]()
        alike = {op: signatures.of(self._signature(op)) for op in operations(root)}
        for op in operations(root):
            for region in op.regions:
                for block in region.blocks:
                    inside = [*block.ops]
                    for start, period, times in repeats([alike[inner] for inner in inside]):
                        for offset in range(period * times):
                            self.first_alike[inside[start + offset]] = inside[start + offset % period]
                        first, second = self.row(inside[start]), self.row(inside[start + period])
                        yield first, second - first, times

    def _signature(self, op: Operation) -> object:
        """Return the key by which operations of different layers correspond."""
        inside = tuple(inner.name for inner in operations(op)) if op.regions else ()
        return op.name, inside, *((result.type, get_sharding(result)) for result in op.results)


def _values_of(op: Operation) -> Iterator[SSAValue]:
    """Yield the tensors that an operation defines: the block arguments of its regions, then its results."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
    yield from op.results


def _owner(value: SSAValue) -> Operation | None:
    return value.owner.parent_op() if isinstance(value.owner, Block) else value.owner


def _what(op: Operation) -> str:
    """Return the symbol of the function that an operation defines or calls, or an empty string."""
    match op:
        case FuncOp():
            return f"@{op.sym_name.data}"
        case CallOp():
            return f"@{op.callee.string_value()}"
        case _:
            return ""


def _scope(op: Operation) -> str:
    """Return JAX's name of an operation, or an empty string."""
    return op.location.desc.data if isinstance(op.location, NameLoc) else ""
