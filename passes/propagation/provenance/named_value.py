"""Look up a value by its printed name, `%12` or `@f:%12` for a value of the function @f, or by JAX's of an argument."""

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy.diagnostics import error
from sdy.dialect.interfaces import defining_op
from sdy.ir.walking import operations
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.options import nearest
from sdy.text.printing.names import Names


def named_value(module: ModuleOp, text: str) -> SSAValue:
    """Return the value of `module` with the printed name `text`; without a function, a value of the main function.

    An argument of the main function also has the name that JAX gave it, as `params['layers'][3]['kernel']`.

    Raises:
        DiagnosticError: There is no such value; the message lists the existing names.
    """
    by_jax = {given_name(argument): argument for argument in main_function(module).args}
    if text and text in by_jax:
        return by_jax[text]
    function_name, colon, name = text.rpartition(":")
    function = Symbols(module).function(function_name.removeprefix("@")) if colon else main_function(module)
    if function is None:
        raise error(module, f"there is no function {function_name}")
    names = Names(generic=False)
    names.add(module)
    inside = set(operations(function))
    values = {f"%{name}": value for value, name in names.values.items() if defining_op(value) in inside}
    name = f"%{name.removeprefix('%')}"
    if name not in values:
        similar = nearest(text, [*filter(None, by_jax)])
        suggestion = f"; did you mean '{similar}'?" if similar else ""
        problem = f"there is no value {name} in @{function.sym_name.data}: it has {_listed(values)}{suggestion}"
        raise error(function, problem)
    return values[name]


def _listed(names: Iterable[str]) -> str:
    """Abbreviate names that differ only in a number to a range: `%arg0 to %arg9, %cst, %0 to %80`."""
    ends: dict[str, tuple[str, str]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        first, _ = ends.get(stem, (name, name))
        ends[stem] = first, name
    return ", ".join(first if first == last else f"{first} to {last}" for first, last in ends.values()) or "none"
