"""Rules of operations, and of custom calls, by a line of annotation.

annotate("mine.matmul", "i k, k j -> i j reduction={k}")
annotate("@my_matmul", "i k, k j -> i j reduction={k}")
"""

from sdy.rules.annotation import rule_maker
from sdy.rules.call_targets import register_target
from sdy.rules.registry import register_maker


def annotate(name: str, annotation: str) -> None:
    """Make an annotation the rule of the operations called `name`, of any dialect, or of custom calls of `@target`.

    It is no custom rule, since it can be made again: it may be dropped, and operands are resharded to what it asks for.

    Raises:
        AnnotationError: the annotation can't be read.
        ValueError: such operations have a rule already, or `name` is not that of an operation or a target.
    """
    maker = rule_maker(name, annotation)
    if name.startswith("@"):
        register_target(name[1:], maker)
    elif "." in name:
        register_maker((name,), maker)
    else:
        raise ValueError(
            f"'{name}' is no operation's name: write its dialect's name before it, as in 'mine.{name}', or @ if it is "
            "the target of custom calls"
        )
