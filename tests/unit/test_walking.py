"""Searches for operations return those of xDSL's own walk, in its order."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, Pure, SymbolOpInterface

from random_modules import random_module
from samples import covering
from sdy.dialect.interfaces import ShardableDataFlow
from sdy.ir.editing import AnalysisPreservingPass, erase
from sdy.ir.fast_access import has_trait, is_terminator, trait_of
from sdy.ir.walking import (
    attributes_in,
    cached_walks,
    captured_values,
    checked_walks,
    innermost_first,
    nesting_operations,
    operations,
    operations_inside_out,
    operations_of,
    operations_with,
    uncached_walks,
)
from sdy.passes.driver import flatten
from sdy.passes.spec import parse_pipeline
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import AddOp
from sdy.text import context, parse

MODULE = parse(
    """
    func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
      %0 = stablehlo.add %x, %x : tensor<f32>
      %1:2 = stablehlo.while(%a = %0, %b = %p) : tensor<f32>, tensor<i1> cond {
        stablehlo.return %b : tensor<i1>
      } do {
        %2 = stablehlo.add %a, %x : tensor<f32>
        stablehlo.return %2, %b : tensor<f32>, tensor<i1>
      }
      return %1#0 : tensor<f32>
    }
    func.func private @declared(tensor<f32>)
    """
)
"""Nested regions, two regions in one operation, and one without blocks."""


def test_operations_equal_xdsl_walk():
    assert operations(MODULE) == list(MODULE.walk())
    assert nesting_operations(MODULE) == [op for op in MODULE.walk() if op.regions]
    assert operations_inside_out(MODULE) == list(MODULE.walk(region_first=True))


def test_searches_exclude_sibling_operations():
    add = operations_of(MODULE, AddOp)[0]
    assert operations(add) == operations_inside_out(add) == [add]


def test_operations_of_some_classes():
    assert [len(operations_of(MODULE, kind)) for kind in (AddOp, WhileOp, FuncOp, Operation)] == [2, 1, 2, 9]
    assert operations_of(MODULE, ReturnOp, WhileOp)[0].name == "stablehlo.while"


def test_regions_capture_what_is_defined_around_them():
    main, loop = operations_of(MODULE, FuncOp)[0], operations_of(MODULE, WhileOp)[0]
    assert captured_values(loop) == [main.args[0]]
    assert captured_values(main) == []


def test_traits_are_those_of_the_class():
    add, end = operations_of(MODULE, AddOp)[0], operations_of(MODULE, ReturnOp)[0]
    assert has_trait(add, Pure)
    assert not is_terminator(add)
    assert is_terminator(end)
    assert isinstance(trait_of(end, IsTerminator), IsTerminator)


TRANSFORMER = Path(__file__).parents[2] / "examples/transformer.mlir"
FULL = "sdy-propagation-pipeline{enable-insert-explicit-collectives=true}"
PIPELINES = (
    FULL,
    f"sdy-propagation-pipeline{{dedup-functions-fully=true}},{FULL}",
    "canonicalize,cse,symbol-dce,inline",
)


def assert_found(module: ModuleOp) -> None:
    """Check that searches, cached or not, return the operations of xDSL's walk."""
    for root in (module, *module.ops):
        assert operations(root) == list(root.walk())
        assert operations_inside_out(root) == list(root.walk(region_first=True))
        assert [*operations_of(root, Operation)] == list(root.walk())


def test_operations_with_traits():
    assert operations_with(MODULE, SymbolOpInterface) == operations_of(MODULE, ModuleOp, FuncOp)
    assert operations_with(MODULE, ShardableDataFlow) == operations_of(MODULE, WhileOp)
    assert len(operations_with(MODULE, SymbolOpInterface, ShardableDataFlow)) == 4


def test_innermost_first_is_inside_out():
    assert innermost_first(operations(MODULE)) == operations_inside_out(MODULE)


def test_attributes_are_those_of_all_operations():
    expected = [a for op in MODULE.walk() for a in (*op.properties.values(), *op.attributes.values())]
    assert {id(attribute) for attribute in attributes_in(MODULE)} == {id(attribute) for attribute in expected}


def test_cached_walks_are_kept_until_an_edit():
    module = MODULE.clone()
    assert operations(module) is not operations(module)
    with cached_walks():
        found = operations(module)
        assert operations(module) is found
        with uncached_walks():
            assert operations(module) is not operations(module)
        found = operations(module)
        declared = operations_of(module, FuncOp)[-1]
        erase(declared)
        assert declared in found
        assert declared not in operations(module)
        assert_found(module)


def test_an_edit_that_is_not_told_is_found():
    module = MODULE.clone()
    with cached_walks():
        declared = operations_of(module, FuncOp)[-1]
        declared.detach()
        with pytest.raises(AssertionError, match=r"'builtin.module' was edited without `invalidate`"):
            operations(module)
        with checked_walks(most=1):
            operations(module)


@covering
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("text", [TRANSFORMER.read_text(), *map(random_module, range(30))], ids=lambda text: len(text))
def test_passes_tell_of_their_edits(text: str, pipeline: str):
    module = parse(text)
    with cached_walks():
        for step, _ in flatten(parse_pipeline(pipeline), module):
            if isinstance(step, AnalysisPreservingPass):
                assert_found(module)
                step.apply(context(), module)
                assert_found(module)
            else:
                with uncached_walks():
                    step.apply(context(), module)
