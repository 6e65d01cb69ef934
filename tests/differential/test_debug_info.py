"""What the options `debug-sharding-origins` and `debug-propagation-edge-sharding` write, against the oracle."""

from pathlib import Path
from typing import Any, cast

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp

import sdy
from oracle import OracleError, oracle
from propagation_modules import MODULES
from random_modules import random_module
from samples import sample
from sdy.dialect.attributes import RESULT_PROPAGATION_EDGES, RESULT_SHARDING_ORIGINS, SHARDING, ValueAttr
from sdy.dialect.ops import DataFlowEdgeOp, ShardingGroupOp
from sdy.dialect.shardings import stores_result_shardings
from sdy.ir.walking import operations
from sdy.passes.driver import run_passes
from sdy.passes.spec import parse_pipeline

PASSES = (
    "sdy-basic-propagate",
    "sdy-aggressive-propagate",
    "sdy-op-priority-propagate",
    "sdy-user-priority-propagate",
)
OPTIONS = ("debug-sharding-origins", "debug-propagation-edge-sharding")


def pipeline(name: str, option: str) -> list[str]:
    """The passes that take part, from constraints to sinking edges."""
    return [
        f"sdy-apply-sharding-constraints{{{option}=true}}",
        f"{name}{{{option}=true}}",
        f"func.func(sdy-sink-data-flow-edges{{sink-{option}=true}})",
    ]


def generic(module: ModuleOp) -> list[str]:
    return sdy.format(module, generic=True).splitlines()


def with_named_origins(text: str) -> str:
    """`text` with no other shardings than those that Shardy names as origins, of which it follows each to its end.

    It writes an origin without a name, `": 0"`, or dies, where an axis comes from the sharding of an operation, or
    from a member of a sharding group that got it from another member. There we write none, and that of the other.
    """
    module = sdy.parse(text)
    for op in operations(module):
        if isinstance(op, ShardingGroupOp):
            op.detach()
        elif isinstance(op, DataFlowEdgeOp):
            op.properties.pop("sharding", None)
        elif stores_result_shardings(type(op)):
            op.attributes.pop(SHARDING, None)
    return sdy.format(module)


def compare(text: str, name: str, option: str) -> None:
    if option == "debug-sharding-origins":
        text = with_named_origins(text)
    try:
        # The C++ passes leave edges with several sources that do not verify.
        theirs = oracle(text, *pipeline(name, option), generic=True, verify=False)
    except OracleError as problem:
        if "died" in str(problem):
            pytest.skip("more than the C++ passes can take")
        raise
    ours = sdy.parse(text)
    run_passes(ours, parse_pipeline(",".join(pipeline(name, option))))
    ours.verify()
    expected = sdy.parse(theirs)
    without_empty_entries(expected)
    assert generic(ours) == generic(expected)


def without_empty_entries(module: ModuleOp) -> None:
    """Take out what is told of nothing, as newer C++ does; see "edges that tell nothing" in cxx_versions.py."""
    for op in operations(module):
        for name in (RESULT_SHARDING_ORIGINS, RESULT_PROPAGATION_EDGES):
            if isinstance(told := op.attributes.get(name), ArrayAttr):
                entries = cast(ArrayAttr[ValueAttr[Any] | DictionaryAttr], told)
                op.attributes[name] = ArrayAttr([entry for entry in entries if entry.data])


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_explained_as_by_the_oracle(module: str, name: str, option: str) -> None:
    compare(MODULES[module], name, option)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("seed", sample(range(60)))
def test_a_random_module_is_explained_as_by_the_oracle(seed: int, option: str) -> None:
    text = random_module(seed, num_operations=8 + seed // 4, priorities=seed % 3 == 0)
    compare(text, PASSES[seed % len(PASSES)], option)


def test_the_transformer_is_explained_as_by_the_oracle() -> None:
    """Through all passes of the propagation pipeline up to those that take the record away again."""
    text = (Path(__file__).parents[2] / "examples" / "transformer.mlir").read_text()
    debug = " ".join(f"{option}=true" for option in OPTIONS)
    sink = " ".join(f"sink-{option}=true" for option in OPTIONS)
    passes = [
        "sdy-import-pipeline",
        "sdy-flatten-call-graph",
        "sdy-import-func-calls",
        "symbol-dce",
        f"sdy-apply-sharding-constraints{{{debug}}}",
        "sdy-pre-order-funcs",
        f"sdy-user-priority-propagate{{{debug}}}",
        "sdy-export-named-computations",
        "sdy-propagate-to-func-results",
        "sdy-unflatten-call-graph",
        "symbol-dce",
        f"func.func(sdy-sink-data-flow-edges{{{sink}}})",
    ]
    ours = sdy.parse(text)
    run_passes(ours, parse_pipeline(",".join(passes)))
    without_empty_entries(ours)
    assert generic(ours) == generic(sdy.parse(oracle(text, *passes, generic=True, verify=False)))


def test_an_origin_is_followed_through_a_sharding_group() -> None:
    module = sdy.parse(MODULES["sharding group"])
    run_passes(module, parse_pipeline("sdy-basic-propagate{debug-sharding-origins=true}"))
    argument = next(line for line in sdy.format(module).splitlines() if "@main" in line).split("%arg2")[1]
    assert 'sdy.sharding_origins = {a = "input: 0", b = "input: 1"}' in argument
