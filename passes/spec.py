"""The text that names passes and their options, as MLIR's tools write it, made into passes.

builtin.module(symbol-dce, func.func(sdy-insert-explicit-reshards{enable-full-version=true}))
keep-sharding-rules=true propagation-strategy=aggressive
"""

import dataclasses
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, NoReturn, cast, get_args, get_origin, get_type_hints

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError
from xdsl.passes import ModulePass

from sdy.diagnostics import DiagnosticError, error
from sdy.passes.catalog import PASSES

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
TRUTH = {"true": True, "1": True, "false": False, "0": False}
"""The words for yes and no."""


def parse_pipeline(text: str) -> list[ModulePass]:
    """The passes that `text` names, in order.

    Anchors nest passes as MLIR's do, `builtin.module(func.func(...))`; every pass here walks the module by itself, so
    an anchor changes nothing. Raises DiagnosticError where the text does not parse or names what there is not.
    """
    return _parse(text, "pipeline")


def make_pass(name: str, options: str = "") -> ModulePass:
    """The pass `name` with `options`, such as `keep-sharding-rules=true`. Raises DiagnosticError."""
    return _instantiate(name, _parse(options, "options") if options else {})


def unknown(kind: str, name: str, known: list[str]) -> DiagnosticError:
    """The error for a name that is not among `known`, with the nearest one that is."""
    found = nearest(name, known)
    return error(None, f"unknown {kind} '{name}'" + (f": did you mean '{found}'?" if found else ""))


def nearest(name: str, known: list[str]) -> str | None:
    """The name among `known` that a person who wrote `name` may have meant."""
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.5)), None)


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
        return [_instantiate(str(name), options[0] if options else {})]

    def options(self, options: list[Token]) -> dict[str, str | None]:
        pairs = (option.partition("=") for option in options)
        return {name: _unquote(value) if equals else None for name, equals, value in pairs}


def _unquote(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'", "{") else value


def _instantiate(name: str, options: dict[str, str | None]) -> ModulePass:
    if name not in PASSES:
        raise unknown("pass", name, list(PASSES))
    pass_class = PASSES[name]()
    types = get_type_hints(pass_class)
    fields = {field.name.replace("_", "-"): field.name for field in dataclasses.fields(pass_class)}
    for option in options:
        if option not in fields:
            raise unknown(f"option of pass '{name}'", option, list(fields))
    return pass_class(**{fields[key]: _convert(name, key, value, types[fields[key]]) for key, value in options.items()})


def _convert(pass_name: str, option: str, text: str | None, kind: Any) -> Any:
    where = f"option '{option}' of pass '{pass_name}'"
    if kind is bool:
        if text is None:
            return True
        if text not in TRUTH:
            raise error(None, f"{where} is true or false, not '{text}'")
        return TRUTH[text]
    if text is None:
        raise error(None, f"{where} needs a value: {option}=...")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise error(None, f"{where} is an integer, not '{text}'") from None
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise unknown(f"value of {where}", text, list(get_args(kind)))
        return text
    if get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text
