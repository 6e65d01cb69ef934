"""What a person is told that an argument is called."""

from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument


def argument_names(main: FuncOp) -> list[str]:
    """What to call each argument of `main`: its place, and the name that jax gave it."""
    names = map(given_name, main.args)
    return [f"argument {index}" + (f" ({name})" if name else "") for index, name in enumerate(names)]


def given_name(argument: BlockArgument) -> str:
    """The name that jax gave an argument, as `params['layers'][3]['kernel']`; empty if it has none."""
    return argument.location.desc.data if isinstance(argument.location, NameLoc) else ""
