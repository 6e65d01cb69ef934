"""The text that names passes and their options, as MLIR's tools write it, made into passes.

builtin.module(symbol-dce, func.func(sdy-insert-explicit-reshards{enable-full-version=true}))
keep-sharding-rules=true propagation-strategy=aggressive
"""

from functools import cache
from typing import Any, NoReturn, cast

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError
from xdsl.passes import ModulePass

from sdy.diagnostics import error
from sdy.passes.options import pass_called, unknown

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
    """The passes that `text` names, in order.

    Anchors nest passes as MLIR's do, `builtin.module(func.func(...))`; every pass here walks the module by itself, so
    an anchor changes nothing. Raises DiagnosticError where the text does not parse or names what there is not.
    """
    return _parse(text, "pipeline")


def make_pass(name: str, options: str) -> ModulePass:
    """The pass `name` with `options`, such as `keep-sharding-rules=true`. Raises DiagnosticError."""
    return pass_called(name, _parse(options, "options"))


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
        return [pass_called(str(name), options[0] if options else {})]

    def options(self, options: list[Token]) -> dict[str, str | None]:
        pairs = (option.partition("=") for option in options)
        return {name: _unquote(value) if equals else None for name, equals, value in pairs}


def _unquote(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'", "{") else value
