"""The mark on a module that says that it holds the program of one device.

The shardings of its functions still say how whole tensors are split; its types are what one device has of them.
"""

from xdsl.dialects.builtin import ModuleOp, UnitAttr

_MARK = "sdy.partitioned"


def is_local(module: ModuleOp) -> bool:
    """Whether the types of `module` are those of one device."""
    return _MARK in module.attributes


def mark_local(module: ModuleOp) -> None:
    """Say that the types of `module` are those of one device."""
    module.attributes[_MARK] = UnitAttr()
