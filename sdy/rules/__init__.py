"""Sharding rules of operations: `sharding_rule(op)`, and `register` to add one.

Each module below gives the rules of a family of operations as it is imported.
"""

from sdy.rules import (
    collectives,
    custom_call,
    decomposition,
    dot,
    elementwise,
    gather_scatter,
    random,
    reduction,
    reshape,
    shape,
    windows,
    without_rule,
)
from sdy.rules.builder import RuleBuilder, identity_rule, shape_of
from sdy.rules.registry import NoRule, register, register_without_rule, sharding_rule

__all__ = [
    "NoRule",
    "RuleBuilder",
    "collectives",
    "custom_call",
    "decomposition",
    "dot",
    "elementwise",
    "gather_scatter",
    "identity_rule",
    "random",
    "reduction",
    "register",
    "register_without_rule",
    "reshape",
    "shape",
    "shape_of",
    "sharding_rule",
    "windows",
    "without_rule",
]
