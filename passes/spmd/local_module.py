"""Marker attribute of a partitioned module, whose types are those of one device's shards.

The shardings of its functions still describe the unpartitioned tensors.
"""

from xdsl.dialects.builtin import ModuleOp, UnitAttr

_MARK = "sdy.partitioned"


def is_local(module: ModuleOp) -> bool:
    """Return whether `module` is partitioned."""
    return _MARK in module.attributes


def mark_local(module: ModuleOp) -> None:
    """Mark `module` as partitioned."""
    module.attributes[_MARK] = UnitAttr()
