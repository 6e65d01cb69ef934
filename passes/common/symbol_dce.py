"""`symbol-dce`: remove the private symbols that nothing uses."""

from collections.abc import Iterable, Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.passes import ModulePass

from sdy.dialect.walk import operations
from sdy.passes.common.symbols import Symbols


class SymbolDcePass(ModulePass):
    """Remove private symbols that no public symbol reaches.

    Before::

        func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
          %0 = call @used(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          ...
        }
        func.func private @used(...) { ... }
        func.func private @unused(...) { ... }

    After: as before, without `@unused`.
    """

    name = "symbol-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        symbols = Symbols(op)
        pending = [operation for operation in op.ops if not _is_discardable(operation)]
        live = set(pending)
        while pending:
            for name in _references(pending.pop()):
                used = symbols.lookup(name)
                if used is not None and used not in live:
                    live.add(used)
                    pending.append(used)
        for operation in list(op.ops):
            if operation not in live:
                symbols.erase(operation)


def _is_discardable(operation: Operation) -> bool:
    visibility = operation.get_attr_or_prop("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.data in ("private", "nested")


def _references(root: Operation) -> Iterator[str]:
    """The names that `root` and what is in it refer to."""
    # Operations share most of their attributes, each of which is looked into once.
    attributes: dict[int, Attribute] = {}
    for operation in operations(root):
        for attribute in operation.properties.values():
            attributes[id(attribute)] = attribute
        for attribute in operation.attributes.values():
            attributes[id(attribute)] = attribute
    return _names_in(attributes.values())


def _names_in(attributes: Iterable[Attribute]) -> Iterator[str]:
    for attribute in attributes:
        match attribute:
            case SymbolRefAttr():
                yield attribute.root_reference.data
            case ArrayAttr():
                yield from _names_in(attribute.data)
            case DictionaryAttr():
                yield from _names_in(attribute.data.values())
            case ParametrizedAttribute():
                yield from _names_in(attribute.parameters)
            case _:
                pass
