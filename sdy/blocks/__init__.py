"""Block operations: `block_operation(op)` describes an operation by blocks, `register` adds one.

Each module below registers a family of operations when it is imported.
"""

from sdy.blocks import arithmetic, independent, linalg, movement, regions, windows
from sdy.blocks.builder import operands_of
from sdy.blocks.costs import Cost, cost, cost_per_step, override_memory
from sdy.blocks.operation import Access, Axis, BlockOperation
from sdy.blocks.registry import NoBlocks, block_operation, register
from sdy.blocks.sharding import derived_rule, halo

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
    "windows",
]
