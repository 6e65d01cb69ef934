"""Simulated execution: collectives beside computation, by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

import sdy
from sdy.diagnostics import capture
from sdy.dialect.meshes import main_mesh
from sdy.passes.communication.prefetch_in_loops import prefetch
from sdy.passes.spmd.costs.hardware import Hardware, Link, hardware_of
from sdy.passes.spmd.costs.schedule import Row, Slice
from sdy.passes.spmd.costs.step_time import StepCost, StepTimes

DEVICE = replace(hardware_of("h100"), overhead=0.0, links=[(8, Link(200e9, 1e-9))], pipelines_loops=True)
SHARDED = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
W = "tensor<4096x4096xbf16>"
DOT = f"stablehlo.dot %{{}}, %{{}} : ({W}, {W}) -> {W}"


def partitioned(text: str) -> ModuleOp:
    module = sdy.parse(f'sdy.mesh @mesh = <["x"=4]>\n{text}')
    with capture():
        sdy.propagate(module)
        sdy.partition(module)
    return module


def cost(text: str, hardware: Hardware = DEVICE) -> StepCost:
    module = partitioned(text)
    return StepTimes(module, main_mesh(module), hardware).cost()


def rows_of(text: str) -> Mapping[Row, Sequence[Slice]]:
    module = partitioned(text)
    return StepTimes(module, main_mesh(module), DEVICE).timeline()


def products(count: int) -> str:
    """Return products with parameters that are gathered, one after the other."""
    arguments = "".join(f", %w{index}: {W} {SHARDED}" for index in range(count))
    whole = "{sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}"
    lines: list[str] = []
    for index in range(count):
        lines.append(f"%g{index} = sdy.sharding_constraint %w{index} <@mesh, [{{}}, {{}}]> : {W}")
        lines.append(f"%x{index + 1} = " + DOT.format(f"x{index}", f"g{index}"))
    body = "\n  ".join(lines)
    return f"func.func @main(%x0: {W} {whole}{arguments}) -> ({W} {whole}) {{\n  {body}\n  return %x{count} : {W}\n}}"


def test_parameters_are_gathered_during_the_product_before() -> None:
    """The first gather is exposed; the others run beside products, which take longer."""
    of_one, of_four = cost(products(1)), cost(products(4))
    assert of_one.overlap == 0
    gather = of_one.communication["x",]
    assert gather < of_one.compute
    assert of_four.communication["x",] == pytest.approx(4 * gather)
    assert of_four.overlap == pytest.approx(3 * gather)


def test_slow_links_bound_a_step() -> None:
    """Gathers follow each other; the products run beside all but the first one."""
    slow = cost(products(4), replace(DEVICE, links=[(8, Link(1e9, 1e-9))]))
    assert slow.seconds == pytest.approx(slow.communication["x",] + slow.compute / 4, rel=1e-3)


def test_synchronous_collectives_do_not_overlap() -> None:
    assert cost(products(4), replace(DEVICE, asynchronous=frozenset())).overlap == 0
    assert cost(products(4), replace(DEVICE, asynchronous=frozenset(["all_reduce"]))).overlap == 0


def test_a_reduction_that_the_next_product_needs_is_exposed() -> None:
    left = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}'
    text = f"""
func.func @main(%a: {W} {left}, %b: {W} {SHARDED}, %c: {W}) -> {W} {{
  %0 = {DOT.format("a", "b")}
  %1 = {DOT.format("0", "c")}
  return %1 : {W}
}}"""
    of_sums = cost(text)
    assert of_sums.communication
    assert of_sums.overlap < 0.01 * of_sums.seconds


LOOP = f"""
func.func @main(%x: {W},
                %w: tensor<8x4096x4096xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}, {{}}]>}}) -> {W} {{
  %begin = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %begin, %y = %x) : tensor<i32>, {W}
  cond {{
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %s = stablehlo.dynamic_slice %w, %i, %begin, %begin, sizes = [1, 4096, 4096]
      : (tensor<8x4096x4096xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4096x4096xbf16>
    %m = stablehlo.reshape %s : (tensor<1x4096x4096xbf16>) -> {W}
    %g = sdy.sharding_constraint %m <@mesh, [{{}}, {{}}]> : {W}
    %d = {DOT.format("y", "g")}
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d : tensor<i32>, {W}
  }}
  return %r#1 : {W}
}}"""


def test_consecutive_iterations_overlap() -> None:
    """The parameters of the next iteration are gathered during the product, so that one gather of eight is exposed."""
    looped = cost(LOOP)
    assert 7 / 8 <= looped.overlap / looped.communication["x",] < 1


def test_iterations_do_not_overlap_on_hardware_that_does_not_pipeline_loops() -> None:
    """All gathers are exposed, or one of nine if each iteration prefetches the parameters of the next one."""
    hardware, module = replace(DEVICE, pipelines_loops=False), partitioned(LOOP)
    assert cost(LOOP, hardware).overlap == pytest.approx(0, abs=1e-9)
    prefetched = StepTimes(prefetch(module, [0]), main_mesh(module), hardware).cost()
    assert 8 / 9 <= prefetched.overlap / prefetched.communication["x",] < 1


def test_a_timeline_has_a_row_for_computation_and_one_for_the_link() -> None:
    rows = rows_of(products(2))
    assert {name: [each.operation.name.partition(".")[2] for each in row] for name, row in rows.items()} == {
        "computation": ["dot", "dot"],
        "link of 8 devices": ["all_gather", "all_gather"],
    }
    (first, second), (gather, of_second) = rows["computation"], rows["link of 8 devices"]
    assert (gather.start, of_second.start) == (0, gather.seconds)
    assert first.start == gather.seconds
    assert second.start == max(of_second.start + of_second.seconds, first.start + first.seconds)


def test_a_timeline_shows_the_first_iteration_of_a_loop_and_the_others_as_one() -> None:
    text = f"""
func.func @main(%a: {W}) -> {W} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, {W}
   cond {{
    %less = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }} do {{
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = {DOT.format("x", "x")}
    stablehlo.return %next, %y : tensor<i32>, {W}
  }}
  return %0#1 : {W}
}}"""
    *_, product, others = sorted(rows_of(text)["computation"], key=lambda each: each.start)
    assert product.operation.name == "stablehlo.dot"
    assert (others.operation.name, others.iterations) == ("stablehlo.while", 4)
    assert others.seconds == pytest.approx(4 * product.seconds, rel=1e-3)
    assert others.start == pytest.approx(product.start + product.seconds)
