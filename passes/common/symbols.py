"""The symbol table of a module."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint
from xdsl.traits import SymbolOpInterface

from sdy.ir.editing import erase, insert
from sdy.ir.fast_access import has_trait
from sdy.ir.walking import operations_at_top


class Symbols:
    """Symbol table of `module`, kept up to date by `insert` and `erase`.

    A symbol whose name is in use is renamed `name_0`, `name_1` and so on, with one counter for all names.
    """

    def __init__(self, module: ModuleOp):
        self.module = module
        self._by_name = dict(_named_operations(module))
        self._next_suffix = 0

    def lookup(self, name: str) -> Operation | None:
        """Return the operation of this name, or None."""
        return self._by_name.get(name)

    def function(self, name: str) -> FuncOp | None:
        """Return the function of this name, or None."""
        operation = self._by_name.get(name)
        return operation if isinstance(operation, FuncOp) else None

    def insert(self, operation: Operation) -> str:
        """Add `operation`, by default at the end of the module, and return its possibly changed name."""
        if operation.parent is None:
            insert(operation, InsertPoint.at_end(self.module.body.block))
        base = name = symbol_name(operation)
        while name in self._by_name:
            name = f"{base}_{self._next_suffix}"
            self._next_suffix += 1
        _rename(operation, name)
        self._by_name[name] = operation
        return name

    def erase(self, operation: Operation) -> None:
        """Remove `operation` from the module and free its name."""
        del self._by_name[symbol_name(operation)]
        erase(operation)


def symbol_name(operation: Operation) -> str:
    """Return the name of a symbol operation."""
    name = operation.get_attr_or_prop("sym_name")
    assert isinstance(name, StringAttr)
    return name.data


def _named_operations(module: ModuleOp) -> Iterator[tuple[str, Operation]]:
    for operation in operations_at_top(module):
        if has_trait(operation, SymbolOpInterface) and operation.get_attr_or_prop("sym_name"):
            yield symbol_name(operation), operation


def _rename(operation: Operation, name: str) -> None:
    where = operation.properties if "sym_name" in operation.properties else operation.attributes
    where["sym_name"] = StringAttr(name)
