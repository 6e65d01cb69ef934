"""The order of a node's readers in a snapshot: the defining operation, then the users, the latest use first."""

from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.passes.common.call_graph import main_function
from sdy.passes.propagation.reading.reader import read

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  %1 = stablehlo.abs %0 : tensor<8xf32>
  %2 = stablehlo.sine %0 : tensor<8xf32>
  %3 = stablehlo.cosine %0 : tensor<8xf32>
  return %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
"""


def readers_of_first_result(module: ModuleOp) -> list[str]:
    """Return the names of the readers of `%0`."""
    snapshot, binding = read(module)
    node = binding.node_of(next(iter(main_function(module).body.block.ops)).results[0])
    assert node is not None
    return [binding.operations[number].name.removeprefix("stablehlo.") for number in snapshot.readers[node]]


def test_users_come_in_reverse_after_the_definer() -> None:
    assert readers_of_first_result(sdy.parse(TEXT)) == ["negate", "cosine", "sine", "abs"]


def test_a_later_use_comes_first() -> None:
    module = sdy.parse(TEXT)
    _, early, *_ = main_function(module).body.block.ops
    early.operands[0] = early.operands[0]
    assert readers_of_first_result(module) == ["negate", "abs", "cosine", "sine"]


def test_a_use_by_an_operation_that_is_no_reader_is_skipped() -> None:
    module = sdy.parse(TEXT.replace("return %1,", "return %0,"))
    *_, late, _ = main_function(module).body.block.ops
    late.operands[0] = late.operands[0]
    assert readers_of_first_result(module) == ["negate", "cosine", "sine", "abs"]
