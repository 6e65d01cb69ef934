"""The attributes of a function's arguments and results."""

from collections.abc import Set

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp


def remove_from_arguments_and_results(function: FuncOp, names: Set[str]) -> None:
    """Remove the attributes of these names from every argument and result of `function`."""
    for kind, given in (("arg_attrs", function.arg_attrs), ("res_attrs", function.res_attrs)):
        if given is None:
            continue
        kept = [{name: value for name, value in entry.data.items() if name not in names} for entry in given]
        if any(kept):
            function.properties[kind] = ArrayAttr(map(DictionaryAttr, kept))
        else:
            del function.properties[kind]
