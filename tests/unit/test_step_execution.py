"""`execute`: the steps of a partitioned program in time."""

import pytest

import sdy
from sdy.passes.mpmd.programs import entry_point
from sdy.passes.mpmd.step_execution import FragmentCost, execute
from sdy.passes.mpmd.steps import StepList

TEXT = """
!a = !mpmd.mesh_tensor<"a", tensor<8xf32>>
!b = !mpmd.mesh_tensor<"b", tensor<8xf32>>
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
  return %x : tensor<8xf32>
}
func.func public @main(%x: !a) -> (!b, !a)
    attributes {topology = #mpmd.topology<<"a" : <["data"=2]>>, <"b" : <["data"=2]>>>} {
  %0 = mpmd.fragment_call<mesh="a", origin=["stage0"]> @f(%x) : (!a) -> !a
  %1 = mpmd.transfer %0 : (!a) -> !b
  %2 = mpmd.fragment_call<mesh="b", origin=["stage1"]> @f(%1) : (!b) -> !b
  %3 = mpmd.fragment_call<mesh="a", origin=["stage0"]> @f(%x) : (!a) -> !a
  return %2, %3 : !b, !a
}
"""


@pytest.mark.parametrize(("is_asynchronous", "first", "second"), [(True, "FF", "F"), (False, "F-F", "-F")])
def test_transfers_take_the_time_of_both_meshes_only_if_synchronous(is_asynchronous: bool, first: str, second: str):
    """Fragments take 2 seconds, and the transfer takes 1."""
    steps = StepList.of(entry_point(sdy.parse(TEXT)))
    costs = {"f": FragmentCost(2.0, 0)}
    execution = execute(steps, costs, [32] * len(steps.types), lambda _: 1.0, is_asynchronous=is_asynchronous)
    rows = execution.meshes.rows
    assert ["".join(each.letter for each in rows[mesh]) for mesh in "ab"] == [first, second]
    assert [(each.start, each.end) for each in execution.links.rows["a", "b"]] == [(2.0, 3.0)]
    assert rows["a"][-1].end == (4.0 if is_asynchronous else 5.0)
    assert rows["b"][-1].end == (5.0 if is_asynchronous else 6.0)
