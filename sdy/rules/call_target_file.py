"""A file of sharding rules of custom calls: on each line a target, a colon, and the annotation of its calls.

    # Batches and heads may be split.
    flash_attention: b h s d, b h t d, b h t d -> b h s d need_replication={s, t, d}
    my_kernels.scale: ..., -> ...

What is behind # is not read. The annotations are those of `sdy.rules.annotation`.
"""

import re

from sdy.diagnostics import DiagnosticError, Location, error, register_source
from sdy.rules.annotated_factors import AnnotationError
from sdy.rules.annotated_operations import annotate

_LINE = re.compile(r"\s*(?P<target>[^\s@](.*?\S)?):(\s+(?P<annotation>.*))?")


def annotate_from(text: str, filename: str) -> None:
    """Register the rules in the text of a file.

    Raises DiagnosticError, with the place in the file, for a line that can't be read, an annotation that is wrong, and
    a target that has a rule already.
    """
    register_source(filename, text)
    for number, line in enumerate(text.split("\n"), 1):
        if rule := line.partition("#")[0].rstrip():
            _annotate(rule, Location(filename, number, 1))


def _annotate(line: str, place: Location) -> None:
    read = _LINE.fullmatch(line)
    if read is None:
        raise _mistake(place, len(line) - len(line.lstrip()), "write `target: operands -> results`")
    annotation = read["annotation"] or ""
    try:
        annotate(f"@{read['target']}", annotation)
    except AnnotationError as problem:
        start = read.start("annotation") if annotation else len(line)
        raise _mistake(place, start + problem.offset, problem.problem) from None
    except ValueError as problem:
        raise _mistake(place, read.start("target"), str(problem)) from None


def _mistake(line: Location, offset: int, what: str) -> DiagnosticError:
    return error(Location(line.filename, line.line, offset + 1), what)
