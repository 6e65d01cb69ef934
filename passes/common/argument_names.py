"""Arguments of functions: their names in reports and messages, and the attributes of arguments and results."""

from collections.abc import Set

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument


def argument_names(main: FuncOp) -> list[str]:
    """Return a name for each argument of `main`: its number, and the name that JAX gave it."""
    names = map(given_name, main.args)
    return [f"argument {index}" + (f" ({name})" if name else "") for index, name in enumerate(names)]


def given_name(argument: BlockArgument) -> str:
    """Return the name that JAX gave an argument, as `params['layers'][3]['kernel']`; empty if it has none."""
    return argument.location.desc.data if isinstance(argument.location, NameLoc) else ""


def set_argument_attribute(function: FuncOp, index: int, name: str, value: Attribute) -> None:
    """Set an attribute of argument `index` of `function`."""
    function.arg_attrs = _with_entry(function.arg_attrs, len(function.function_type.inputs), index, name, value)


def set_result_attribute(function: FuncOp, index: int, name: str, value: Attribute) -> None:
    """Set an attribute of result `index` of `function`."""
    function.res_attrs = _with_entry(function.res_attrs, len(function.function_type.outputs), index, name, value)


def _with_entry(
    attributes: ArrayAttr[DictionaryAttr] | None, count: int, index: int, name: str, value: Attribute
) -> ArrayAttr[DictionaryAttr]:
    entries = list(attributes or (DictionaryAttr({}),) * count)
    entries[index] = DictionaryAttr({**entries[index].data, name: value})
    return ArrayAttr(entries)


def attribute_names(function: FuncOp) -> set[str]:
    """Return the names of all attributes of the arguments and results of `function`."""
    return {
        name
        for attributes in (function.arg_attrs, function.res_attrs)
        for entry in attributes or ()
        for name in entry.data
    }


def remove_from_arguments_and_results(function: FuncOp, names: Set[str]) -> None:
    """Remove attributes by name from every argument and result of `function`."""
    for kind, attributes in (("arg_attrs", function.arg_attrs), ("res_attrs", function.res_attrs)):
        if attributes is None:
            continue
        remaining = [{name: value for name, value in entry.data.items() if name not in names} for entry in attributes]
        if any(remaining):
            function.properties[kind] = ArrayAttr(map(DictionaryAttr, remaining))
        else:
            del function.properties[kind]
