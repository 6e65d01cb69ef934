"""The file format of sharding rules of custom calls: each line has a target, a colon, and an annotation.

    # Batches and heads may be sharded.
    flash_attention: b h s d, b h t d, b h t d -> b h s d need_replication={s, t, d}
    my_kernels.scale: ..., -> ...

A # begins a comment. The syntax of annotations is that of `sdy.rules.annotation`.
"""

import re

from sdy.diagnostics import DiagnosticError, Location, error, register_source
from sdy.rules.annotated_factors import AnnotationError
from sdy.rules.annotated_operations import annotate

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
