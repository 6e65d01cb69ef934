"""`symbol-dce`: remove unused private symbols."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import attributes_in, operations_at_top
from sdy.passes.common.call_graph import calls_by_function
from sdy.passes.common.symbols import Symbols
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.replica_groups import ReplicaGroupMeshAxesAttr


class SymbolDcePass(AnalysisPreservingPass):
    """Remove private symbols that are not reachable from a public symbol.

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
        erase_dead_symbols(op)


def erase_dead_symbols(module: ModuleOp) -> None:
    """Erase the private symbols of `module` that are not reachable from a public symbol."""
    symbol_ops = operations_at_top(module)
    live = {operation for operation in symbol_ops if not _is_discardable(operation)}
    if len(live) == len(symbol_ops):
        return
    symbols, calls = Symbols(module), calls_by_function(module)
    # Most references are calls, which are faster to collect than symbol names in attributes.
    _add_reached(live, symbols, lambda root: [call.callee.root_reference.data for call in calls.get(root, ())])
    if not live.issuperset(symbol_ops):
        _add_reached(live, symbols, lambda root: _names_in(attributes_in(root)))
    for operation in symbol_ops:
        if operation not in live:
            symbols.erase(operation)


def _is_discardable(operation: Operation) -> bool:
    visibility = operation.get_attr_or_prop("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.data in ("private", "nested")


def _add_reached(live: set[Operation], symbols: Symbols, names_in: Callable[[Operation], Iterable[str]]) -> None:
    """Add the symbols reachable from `live` by the references that `names_in` returns."""
    pending = list(live)
    while pending:
        for name in names_in(pending.pop()):
            used = symbols.lookup(name)
            if used is not None and used not in live:
                live.add(used)
                pending.append(used)


def _names_in(attributes: Iterable[Attribute]) -> Iterator[str]:
    """Yield the symbol names in `attributes` and nested ones, visiting each object once."""
    pending, visited = list(attributes), set[int]()
    while pending:
        attribute = pending.pop()
        if id(attribute) not in visited:
            visited.add(id(attribute))
            if type(attribute) is SymbolRefAttr:
                yield attribute.root_reference.data
            elif type(attribute) is TensorShardingAttr:
                yield from _meshes_of(attribute.data)
            elif type(attribute) is TensorShardingPerValueAttr:
                yield from _meshes_of(*attribute.data)
            elif type(attribute) is ReplicaGroupMeshAxesAttr:
                pending.append(attribute.data.mesh)
            elif (parts_of := _nested_attributes_getter(attribute.__class__)) is not None:
                pending += parts_of(attribute)


def _meshes_of(*shardings: TensorSharding) -> Iterator[str]:
    for sharding in shardings:
        if isinstance(sharding.mesh, str):
            yield sharding.mesh


@cache
def _nested_attributes_getter(attribute_class: type[Attribute]) -> Callable[[Any], Iterable[Attribute]] | None:
    """Return a function that gets the nested attributes of a class, None if it has none."""
    if issubclass(attribute_class, ArrayAttr):
        return attrgetter("data")
    if issubclass(attribute_class, DictionaryAttr):
        return lambda dictionary: dictionary.data.values()
    return attrgetter("parameters") if issubclass(attribute_class, ParametrizedAttribute) else None
