"""Block operations: `block_operation(op)` describes an operation by blocks, `register` adds one, `run` runs a program.

Each module below registers a family of operations when it is imported.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sdy.blocks import arithmetic, independent, linalg, movement, regions, windows
from sdy.blocks.builder import operands_of
from sdy.blocks.costs import Cost, cost, cost_per_step, override_memory
from sdy.blocks.operation import Access, Axis, BlockOperation
from sdy.blocks.registry import NoBlocks, block_operation, register
from sdy.blocks.sharding import derived_rule, halo
from sdy.lazy_names import lazy_names as _lazy_names

if TYPE_CHECKING:
    run: Callable[..., Any]

__all__ = [
    "Access",
    "Axis",
    "BlockOperation",
    "Cost",
    "NoBlocks",
    "arithmetic",
    "block_operation",
    "cost",
    "cost_per_step",
    "derived_rule",
    "halo",
    "independent",
    "linalg",
    "movement",
    "operands_of",
    "override_memory",
    "regions",
    "register",
    "run",
    "windows",
]

__getattr__, __dir__ = _lazy_names("sdy.blocks", globals(), {"run": "sdy.passes.blocks.run"})
