"""Registration of the sharding rules of operations and custom calls by annotations.

annotate("mine.matmul", "i k, k j -> i j reduction={k}")
annotate("@my_matmul", "i k, k j -> i j reduction={k}")
"""

from sdy.rules.annotation import rule_from_annotation
from sdy.rules.call_targets import register_target
from sdy.rules.registry import register_complete_rule


def annotate(name: str, annotation: str) -> None:
    """Register the sharding rule of an operation or a custom call as an annotation.

    The rule does not count as a custom rule, since it can be rebuilt: it may be dropped from the module, and operands
    are resharded to match it.

    Args:
        name: The name of an operation of any dialect, or `@target` for the custom calls of a target.
        annotation: The annotation; see `sdy.rules.annotation` for the syntax.

    Raises:
        AnnotationError: The annotation cannot be parsed.
        ValueError: The operations have a rule already, or `name` is neither an operation nor a target.
    """
    make_rule = rule_from_annotation(name, annotation)
    if name.startswith("@"):
        register_target(name[1:], make_rule)
    elif "." in name:
        register_complete_rule((name,), make_rule)
    else:
        raise ValueError(
            f"'{name}' is not an operation name: write the dialect before it, as in 'mine.{name}', or @ before the "
            "target of custom calls"
        )
