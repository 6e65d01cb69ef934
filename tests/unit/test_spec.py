"""The parser of textual pass pipelines."""

import pytest

from sdy.diagnostics import DiagnosticError
from sdy.passes.common.canonicalize import CanonicalizePass
from sdy.passes.exporting.insert_explicit_reshards import InsertExplicitReshardsPass
from sdy.passes.importing.pre_order_funcs import PreOrderFuncsPass
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass
from sdy.passes.spec import parse_pass, parse_pipeline


@pytest.mark.parametrize(
    "text",
    [
        "sdy-pre-order-funcs, sdy-insert-explicit-reshards{enable-full-version=true}",
        "builtin.module(sdy-pre-order-funcs,func.func(sdy-insert-explicit-reshards{enable-full-version}))",
        'builtin.module( sdy-pre-order-funcs,any(sdy-insert-explicit-reshards{ enable-full-version="true" }) )',
        "sdy-pre-order-funcs{},sdy-insert-explicit-reshards{enable-full-version=1}",
    ],
)
def test_pipelines_in_mlir_syntax(text: str) -> None:
    assert parse_pipeline(text) == [PreOrderFuncsPass(), InsertExplicitReshardsPass(enable_full_version=True)]


def test_the_empty_pipeline() -> None:
    assert parse_pipeline("builtin.module()") == []


def test_a_list_of_values() -> None:
    for text in ("enable-patterns=sdy-reshard,sdy-collective", "enable-patterns={sdy-reshard, sdy-collective}"):
        assert parse_pass("canonicalize", text) == CanonicalizePass(enable_patterns=("sdy-reshard", "sdy-collective"))


def test_an_empty_value_does_not_swallow_the_next_option() -> None:
    made = parse_pass("sdy-user-priority-propagate", "module-dump-directory= keep-sharding-rules=true")
    assert made == UserPriorityPropagatePass(module_dump_directory="", keep_sharding_rules=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdy-pre-order-func", "unknown pass 'sdy-pre-order-func': did you mean 'sdy-pre-order-funcs'?"),
        ("sdy-pre-order-funcs{x=1}", "unknown option of pass 'sdy-pre-order-funcs' 'x'"),
        (
            "sdy-insert-explicit-reshards{enable-ful-version=true}",
            "unknown option of pass 'sdy-insert-explicit-reshards' 'enable-ful-version': "
            "did you mean 'enable-full-version'?",
        ),
        (
            "sdy-insert-explicit-reshards{enable-full-version=maybe}",
            "option 'enable-full-version' of pass 'sdy-insert-explicit-reshards' is true or false, not 'maybe'",
        ),
        (
            "sdy-user-priority-propagate{propagation-strategy=agressive}",
            "unknown value of option 'propagation-strategy' of pass 'sdy-user-priority-propagate' 'agressive': "
            "did you mean 'aggressive'?",
        ),
        ("func.fun(symbol-dce)", "unknown operation to nest a pipeline in 'func.fun': did you mean 'func.func'?"),
    ],
)
def test_unknown_names_are_reported_with_a_suggestion(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as raised:
        parse_pipeline(text)
    assert raised.value.message == message


@pytest.mark.parametrize(("text", "column"), [("builtin.module(symbol-dce", 26), ("symbol-dce,,cse", 12), ("a b", 3)])
def test_syntax_errors_have_a_caret(text: str, column: int) -> None:
    with pytest.raises(DiagnosticError) as raised:
        parse_pipeline(text)
    *_, line, caret = raised.value.message.splitlines()
    assert line == text
    assert caret.index("^") == column - 1
