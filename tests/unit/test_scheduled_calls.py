"""`schedule_calls`: the calls of a partitioned program in the order of a schedule."""

import re
from collections.abc import Sequence

import pytest

import sdy
from sdy.ir.walking import operations_of
from sdy.mpmd import FragmentCallOp
from sdy.passes.mpmd.scheduled_calls import schedule_calls
from sdy.passes.mpmd.schedules import schedule

HEAD = """
!a = !mpmd.mesh_tensor<"a", tensor<8xf32>>
!b = !mpmd.mesh_tensor<"b", tensor<8xf32>>
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
  return %x : tensor<8xf32>
}
func.func private @donating(%x: tensor<8xf32> {jax.buffer_donor = true}) -> tensor<8xf32>
    attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
  return %x : tensor<8xf32>
}
func.func public @main(%x: !a) -> (RESULTS)
    attributes {topology = #mpmd.topology<<"a" : <["data"=2]>>, <"b" : <["data"=2]>>>} {
"""


def call(result: str, operand: str, origin: str, mesh: str = "a", callee: str = "f") -> str:
    return (
        f'  %{result} = mpmd.fragment_call<mesh="{mesh}", origin=[{origin}]> @{callee}(%{operand})'
        f" : (!{mesh}) -> !{mesh}\n"
    )


def transfer(result: str, operand: str, source: str, target: str) -> str:
    return f"  %{result} = mpmd.transfer %{operand} : (!{source}) -> !{target}\n"


def scheduled(lines: Sequence[str], results: Sequence[str], mesh: str, name: str, microbatches: int) -> list[str]:
    """Return the calls in order, as the names of their results."""
    types = ", ".join([f"!{mesh}"] * len(results))
    end = f"  return {', '.join(f'%{each}' for each in results)} : {types}\n}}"
    text = HEAD.replace("RESULTS", types) + "".join(lines) + end
    module = sdy.parse(text)
    names = re.findall(r"%(\w+) = mpmd.fragment_call", text)
    name_of = dict(zip(operations_of(module, FragmentCallOp), names, strict=True))
    schedule_calls(module, schedule(name, 2, microbatches))
    module.verify()
    return [name_of[op] for op in operations_of(module, FragmentCallOp)]


def two_stages(microbatches: int, *, donates: bool = False) -> list[str]:
    """Return a forward and a backward of two stages for each microbatch."""
    lines: list[str] = []
    for each in range(microbatches):
        lines += [
            call(f"f0_{each}", "x", '"stage0"'),
            transfer(f"t{each}", f"f0_{each}", "a", "b"),
            call(f"f1_{each}", f"t{each}", '"stage1"', "b"),
            call(f"b1_{each}", f"f1_{each}", '"stage1"(1)', "b"),
            transfer(f"u{each}", f"b1_{each}", "b", "a"),
            call(f"b0_{each}", f"u{each}", '"stage0"(1)', callee="donating" if donates else "f"),
        ]
    return lines


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("gpipe", ["f0_0", "f0_1", "f0_2", "b0_0", "b0_1", "b0_2"], ["f1_0", "f1_1", "f1_2", "b1_0", "b1_1", "b1_2"]),
        ("1f1b", ["f0_0", "f0_1", "b0_0", "f0_2", "b0_1", "b0_2"], ["f1_0", "b1_0", "f1_1", "b1_1", "f1_2", "b1_2"]),
    ],
)
def test_each_mesh_calls_in_the_order_of_the_schedule(name: str, first: list[str], second: list[str]):
    calls = scheduled(two_stages(3), [f"b0_{each}" for each in range(3)], "a", name, 3)
    assert [each for each in calls if each[1] == "0"] == first
    assert [each for each in calls if each[1] == "1"] == second


def test_a_call_that_donates_comes_after_the_other_readers():
    """The update donates the weights that all forwards read, and by its stage it would come first."""
    lines = [
        call("f0_0", "x", '"stage0"'),
        call("f0_1", "x", '"stage0"'),
        call("update", "x", "", callee="donating"),
    ]
    assert scheduled(lines, ["f0_0", "f0_1", "update"], "a", "1f1b", 2) == ["f0_0", "f0_1", "update"]


def test_a_call_outside_of_stages_comes_as_soon_as_its_operands():
    lines = [*two_stages(2), call("scaled", "f0_0", "")]
    calls = scheduled(lines, ["b0_0", "b0_1", "scaled"], "a", "gpipe", 2)
    assert calls.index("scaled") == 1


def test_a_call_waits_for_an_operand_that_comes_later_than_its_turn():
    """The forward of the second microbatch reads the backward of the first one."""
    lines = [
        call("f0_0", "x", '"stage0"'),
        call("b0_0", "f0_0", '"stage0"(1)'),
        call("f0_1", "b0_0", '"stage0"'),
        call("b0_1", "f0_1", '"stage0"(1)'),
    ]
    assert scheduled(lines, ["b0_1"], "a", "gpipe", 2) == ["f0_0", "b0_0", "f0_1", "b0_1"]


def test_two_backwards_are_the_gradients_of_the_input_and_of_the_weights():
    lines: list[str] = []
    for each in range(3):
        lines += [
            call(f"f{each}", "x", '"stage0"'),
            call(f"i{each}", f"f{each}", '"stage0"(1)'),
            call(f"w{each}", f"i{each}", '"stage0"(1)'),
        ]
    wanted = ["f0", "f1", "i0", "w0", "f2", "i1", "w1", "i2", "w2"]
    assert scheduled(lines, ["w0", "w1", "w2"], "a", "zb-h1", 3) == wanted
