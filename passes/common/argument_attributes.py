"""The attributes of a function's arguments and results."""

from collections.abc import Set

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute


def remove_from_arguments_and_results(function: FuncOp, names: Set[str]) -> None:
    """Remove the attributes of these names from every argument and result of `function`."""
    for kind in ("arg_attrs", "res_attrs"):
        given = function.properties.get(kind)
        if isinstance(given, ArrayAttr):
            kept = ArrayAttr([_without(entry, names) for entry in given])
            function.properties[kind] = kept
            if not any(entry.data for entry in kept):
                del function.properties[kind]


def _without(entry: Attribute, names: Set[str]) -> DictionaryAttr:
    assert isinstance(entry, DictionaryAttr)
    return DictionaryAttr({name: value for name, value in entry.data.items() if name not in names})
