"""Sharding rules of operations: `sharding_rule(op)` returns one, `register` adds one.

Each module below registers the rules of a family of operations on import. Rules of less common dialects, and the parser
of annotations, are imported on first use.
"""

from typing import TYPE_CHECKING

from sdy.ir.shapes import shape_of
from sdy.lazy_names import lazy_names
from sdy.rules import (
    collectives,
    custom_call,
    elementwise,
    gather_scatter,
    linear_algebra,
    reduction,
    reshape,
    shape,
    windows,
)
from sdy.rules.builder import RuleBuilder, identity_rule
from sdy.rules.call_targets import register_custom_call
from sdy.rules.registry import (
    ByRule,
    NoRule,
    is_registered_elementwise,
    movement,
    register,
    register_movement,
    register_without_rule,
    remove_sharding_rules,
    sharding_rule,
    sharding_rules,
)

if TYPE_CHECKING:
    from sdy.rules.annotated_factors import Annotation, AnnotationError
    from sdy.rules.annotated_operations import annotate
    from sdy.rules.annotation import parse_annotation

__all__ = [
    "Annotation",
    "AnnotationError",
    "ByRule",
    "NoRule",
    "RuleBuilder",
    "annotate",
    "collectives",
    "custom_call",
    "elementwise",
    "gather_scatter",
    "identity_rule",
    "is_registered_elementwise",
    "linear_algebra",
    "movement",
    "parse_annotation",
    "reduction",
    "register",
    "register_custom_call",
    "register_movement",
    "register_without_rule",
    "remove_sharding_rules",
    "reshape",
    "shape",
    "shape_of",
    "sharding_rule",
    "sharding_rules",
    "windows",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    globals(),
    {
        "Annotation": "sdy.rules.annotated_factors",
        "AnnotationError": "sdy.rules.annotated_factors",
        "annotate": "sdy.rules.annotated_operations",
        "parse_annotation": "sdy.rules.annotation",
    },
)
