"""Names of arguments in reports and messages."""

from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument


def argument_names(main: FuncOp) -> list[str]:
    """Return a name for each argument of `main`: its number, and the name that JAX gave it."""
    names = map(given_name, main.args)
    return [f"argument {index}" + (f" ({name})" if name else "") for index, name in enumerate(names)]


def given_name(argument: BlockArgument) -> str:
    """Return the name that JAX gave an argument, as `params['layers'][3]['kernel']`; empty if it has none."""
    return argument.location.desc.data if isinstance(argument.location, NameLoc) else ""
