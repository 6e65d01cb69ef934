"""Cloned operations equal those of xDSL's own `clone`, with the same use order."""

from pathlib import Path

import pytest
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

import sdy
from sdy.ir.building import clone

TRANSFORMER = (Path(__file__).parents[2] / "examples/transformer.mlir").read_text()

BRANCHES = """
func.func @f(%c: i1, %a: tensor<4xf32>) -> tensor<4xf32> {
  "test.branch"(%c, %a)[^bb1, ^bb2] : (i1, tensor<4xf32>) -> ()
^bb1(%x: tensor<4xf32>):
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  "test.branch"(%c, %0)[^bb1, ^bb2] : (i1, tensor<4xf32>) -> ()
^bb2:
  return %a : tensor<4xf32>
}
"""

USED_BEFORE_DEFINED = """
"test.graph"() ({
  %0 = "test.op"(%1, %2, %1) : (i32, i32, i32) -> i32
  %1 = "test.op"(%0) ({
    %3 = "test.op"(%0, %1) : (i32, i32) -> i32
  }) : (i32) -> i32
  %2 = "test.op"(%2) : (i32) -> i32
}) : () -> ()
"""


def parsed(text: str) -> Operation:
    context = sdy.text.context()
    context.allow_unregistered = True
    return sdy.text.reading.parser.parse_module(text, "<stdin>", context)


def described(top: Operation) -> list[object]:
    """Describe everything in `top`, with values numbered and their uses in order."""
    ops = [*top.walk()]
    values: list[SSAValue] = []
    blocks: list[Block] = []
    for op in ops:
        values += op.results
        for region in op.regions:
            blocks += region.blocks
            values += [argument for block in region.blocks for argument in block.args]
    op_numbers, numbers, block_numbers = (
        {id(each): n for n, each in enumerate(all_)} for all_ in (ops, values, blocks)
    )
    found: list[object] = []
    for op in ops:
        operands = [numbers[id(operand)] for operand in op.operands]
        successors = [block_numbers[id(block)] for block in op.successors]
        found += [op.__class__, op.name, operands, successors, op.properties, op.attributes, op.location]
    for value in values:
        uses = [(op_numbers[id(use.operation)], use.index) for use in value.uses]
        location = value.location if isinstance(value, BlockArgument) else None
        found += [value.type, value.name_hint, location, uses]
    return found


@pytest.mark.parametrize("text", [TRANSFORMER, BRANCHES, USED_BEFORE_DEFINED])
def test_a_copy_is_what_xdsl_makes(text: str):
    top = parsed(text)
    for number, op in enumerate(top.walk()):
        for result in op.results:
            result.name_hint = f"v{number}"
    copy = clone(top)
    assert described(copy) == described(top.clone())
    assert not {id(op) for op in copy.walk()} & {id(op) for op in top.walk()}


def test_copy_uses_captured_values():
    top = parsed("%0 = arith.constant 1 : i32\n%1 = arith.addi %0, %0 : i32")
    outside, inside = top.regions[0].block.ops
    copy = clone(inside)
    assert [*copy.operands] == [*outside.results] * 2
    assert len([*outside.results[0].uses]) == 4
    copy.attributes["own"] = copy.location
    assert "own" not in inside.attributes
