"""Registration of the sharding rules of operations and custom calls by annotations, in Python or in a file.

annotate("mine.matmul", "i k, k j -> i j reduction={k}")
annotate("@my_matmul", "i k, k j -> i j reduction={k}")

Each line of a file has a target of custom calls, a colon, and an annotation:

    # Batches and heads may be sharded.
    flash_attention: b h s d, b h t d, b h t d -> b h s d need_replication={s, t, d}
    my_kernels.scale: ..., -> ...

A # begins a comment. The syntax of annotations is that of `sdy.rules.annotation`.
"""

import re

from sdy.diagnostics import DiagnosticError, Location, error, register_source
from sdy.rules.annotated_factors import AnnotationError
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


_LINE = re.compile(r"\s*(?P<target>[^\s@](.*?\S)?):(\s+(?P<annotation>.*))?")


def annotate_from(text: str, filename: str) -> None:
    """Register the rules in the text of a file.

    Args:
        text: The text of the file.
        filename: The name of the file in diagnostics.

    Raises:
        DiagnosticError: A line or an annotation cannot be parsed, or a target has a rule already.
    """
    register_source(filename, text)
    for number, line in enumerate(text.split("\n"), 1):
        if rule := line.partition("#")[0].rstrip():
            _annotate(rule, Location(filename, number, 1))


def _annotate(line: str, place: Location) -> None:
    match = _LINE.fullmatch(line)
    if match is None:
        raise _error(place, len(line) - len(line.lstrip()), "write `target: operands -> results`")
    annotation = match["annotation"] or ""
    try:
        annotate(f"@{match['target']}", annotation)
    except AnnotationError as problem:
        start = match.start("annotation") if annotation else len(line)
        raise _error(place, start + problem.offset, problem.problem) from None
    except ValueError as problem:
        raise _error(place, match.start("target"), str(problem)) from None


def _error(line: Location, offset: int, message: str) -> DiagnosticError:
    return error(Location(line.filename, line.line, offset + 1), message)
