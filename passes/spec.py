"""The parser of textual pass pipelines and pass options, in MLIR's syntax.

builtin.module(symbol-dce, func.func(sdy-insert-explicit-reshards{enable-full-version=true}))
keep-sharding-rules=true propagation-strategy=aggressive
"""

from functools import cache
from typing import Any, NoReturn, cast

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError
from xdsl.passes import ModulePass

from sdy.diagnostics import error
from sdy.passes.options import create_pass, unknown

_GRAMMAR = r"""
pipeline: (element ("," element)*)?
?element: NAME "(" pipeline ")" -> nested
        | NAME ("{" options "}")? -> single
options: OPTION*

NAME: /[A-Za-z_][\w.-]*/
OPTION: /[\w-]+(=("[^"]*"|'[^']*'|\{[^{}]*\}|[^\s{}]*))?/
%ignore /\s+/
"""

_ANCHORS = {"builtin.module", "func.func", "any"}


def parse_pipeline(text: str) -> list[ModulePass]:
    """Parse a textual pass pipeline.

    Anchors such as `builtin.module(func.func(...))` are accepted but have no effect: all passes run on the module.

    Raises:
        DiagnosticError: The text cannot be parsed, or a pass or an option is unknown.
    """
    return _parse(text, "pipeline")


def parse_pass(name: str, options: str) -> ModulePass:
    """Create the pass `name` with textual `options`, for example `keep-sharding-rules=true`.

    Raises:
        DiagnosticError: The options cannot be parsed, or the pass or an option is unknown.
    """
    return create_pass(name, _parse(options, "options"))


@cache
def _grammar() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", start=["pipeline", "options"])


def _parse(text: str, start: str) -> Any:
    try:
        tree = cast(Any, _grammar()).parse(text, start=start)  # lark does not declare all of its types
    except UnexpectedInput as problem:
        _refuse(text, problem)
    try:
        return _ToPasses(visit_tokens=False).transform(tree)
    except VisitError as wrapped:
        raise wrapped.orig_exc from None


def _refuse(text: str, problem: UnexpectedInput) -> NoReturn:
    at_end = isinstance(problem, UnexpectedToken) and cast(Any, problem).token.type == "$END"
    column = len(text) + 1 if at_end else problem.column
    expected = "a pass name" if "NAME" in getattr(problem, "expected", ()) else "',', ')' or the end"
    raise error(None, f"expected {expected} at column {column} of the pipeline\n{text}\n{' ' * (column - 1)}^")


class _ToPasses(Transformer[Token, Any]):
    def pipeline(self, elements: list[list[ModulePass]]) -> list[ModulePass]:
        return [step for element in elements for step in element]

    def nested(self, parts: list[Any]) -> list[ModulePass]:
        anchor, passes = parts
        if anchor not in _ANCHORS:
            raise unknown("operation to nest a pipeline in", str(anchor), sorted(_ANCHORS))
        return passes

    def single(self, parts: list[Any]) -> list[ModulePass]:
        name, *options = parts
        return [create_pass(str(name), options[0] if options else {})]

    def options(self, options: list[Token]) -> dict[str, str | None]:
        pairs = (option.partition("=") for option in options)
        return {name: _unquote(value) if equals else None for name, equals, value in pairs}


def _unquote(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'", "{") else value
