"""Output of the options `debug-sharding-origins` and `debug-propagation-edge-sharding`, compared with the oracle."""

from pathlib import Path
from typing import Any, cast

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp

import sdy
from oracle import OracleError, oracle
from propagation_modules import MODULES
from random_modules import random_module
from samples import covering, sample
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
    """Return the passes that write debug information, from sharding constraints to sinking data-flow edges."""
    return [
        f"sdy-apply-sharding-constraints{{{option}=true}}",
        f"{name}{{{option}=true}}",
        f"func.func(sdy-sink-data-flow-edges{{sink-{option}=true}})",
    ]


def generic(module: ModuleOp) -> list[str]:
    return sdy.format(module, generic=True).splitlines()


def with_named_origins(text: str) -> str:
    """Return `text` with only the shardings that Shardy names as origins.

    Shardy writes an unnamed origin, `": 0"`, or crashes, if an axis comes from an operation's sharding, or from a
    member
    of a sharding group that received it from another member. We write no origin there, or the other member's.
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
        # The C++ passes leave data-flow edges with several sources, which do not verify.
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
    """Remove empty entries, as newer C++ does; see "edges that tell nothing" in cxx_versions.py."""
    for op in operations(module):
        for name in (RESULT_SHARDING_ORIGINS, RESULT_PROPAGATION_EDGES):
            if isinstance(told := op.attributes.get(name), ArrayAttr):
                entries = cast(ArrayAttr[ValueAttr[Any] | DictionaryAttr], told)
                op.attributes[name] = ArrayAttr([entry for entry in entries if entry.data])


@covering
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_explained_as_by_the_oracle(module: str, name: str, option: str) -> None:
    compare(MODULES[module], name, option)


@covering
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("seed", sample(range(60)))
def test_a_random_module_is_explained_as_by_the_oracle(seed: int, option: str) -> None:
    text = random_module(seed, num_operations=8 + seed // 4, priorities=seed % 3 == 0)
    compare(text, PASSES[seed % len(PASSES)], option)


def test_the_transformer_is_explained_as_by_the_oracle() -> None:
    """Run all passes of the propagation pipeline up to those that remove the debug information."""
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
