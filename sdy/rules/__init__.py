"""Sharding rules of operations: `sharding_rule(op)`, and `register` to add one.

Each module below gives the rules of a family of operations as it is imported.
"""

from sdy.rules import (
    arith,
    collectives,
    custom_call,
    dot,
    elementwise,
    gather_scatter,
    linalg,
    linear_algebra,
    random,
    reduction,
    reshape,
    shape,
    tensor,
    windows,
    without_rule,
)
from sdy.rules.annotated_factors import Annotation, AnnotationError
from sdy.rules.annotation import annotate, parse_annotation
from sdy.rules.builder import RuleBuilder, identity_rule, shape_of
from sdy.rules.custom_call import register_custom_call
from sdy.rules.registry import (
    NoRule,
    is_registered_elementwise,
    register,
    register_without_rule,
    sharding_rule,
    sharding_rules,
)

__all__ = [
    "Annotation",
    "AnnotationError",
    "NoRule",
    "RuleBuilder",
    "annotate",
    "arith",
    "collectives",
    "custom_call",
    "dot",
    "elementwise",
    "gather_scatter",
    "identity_rule",
    "is_registered_elementwise",
    "linalg",
    "linear_algebra",
    "parse_annotation",
    "random",
    "reduction",
    "register",
    "register_custom_call",
    "register_without_rule",
    "reshape",
    "shape",
    "shape_of",
    "sharding_rule",
    "sharding_rules",
    "tensor",
    "windows",
    "without_rule",
]
