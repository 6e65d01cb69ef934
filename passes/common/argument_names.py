"""What a person is told that an argument is called."""

from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import FuncOp


def argument_names(main: FuncOp) -> list[str]:
    """What to call each argument of `main`: its place, and the name that jax gave it."""
    names = [arg.location.desc.data if isinstance(arg.location, NameLoc) else "" for arg in main.args]
    return [f"argument {index}" + (f" ({name})" if name else "") for index, name in enumerate(names)]
