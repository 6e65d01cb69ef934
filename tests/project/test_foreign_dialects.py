"""The passes accept modules with operation classes of other packages, including xdsl-jax if installed."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr
from xdsl.dialects.func import Func
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

import sdy
from sdy.foreign_dialects import adopt

TEXT = sdy.format(
    sdy.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %w: tensor<16x4xf32>) -> tensor<8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.compare LT, %0, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %2 = stablehlo.select %1, %0, %0 : tensor<8x4xi1>, tensor<8x4xf32>
  %3 = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [1]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
"""),
    generic=True,
)


def no_stablehlo() -> list[Dialect]:
    return []


def stablehlo_of_xdsl_jax() -> list[Dialect]:
    # xdsl-jax pins another xDSL, so it is no test dependency; CI installs it for these tests.
    package = pytest.importorskip("xdsl_jax.dialects.stablehlo", reason="xdsl-jax is not installed")
    return [package.StableHLO]


SOURCES = pytest.mark.parametrize("dialects", [no_stablehlo, stablehlo_of_xdsl_jax])


def read(text: str, *dialects: Dialect) -> ModuleOp:
    ctx = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, *dialects):
        ctx.load_dialect(dialect)
    return Parser(ctx, text).parse_module()


@SOURCES
def test_propagation_and_partitioning_are_those_of_a_module_of_ours(dialects: Callable[[], list[Dialect]]):
    foreign, ours = read(TEXT, *dialects()), sdy.parse(TEXT)
    for module in (foreign, ours):
        sdy.propagate(module)
        sdy.partition(module)
    assert sdy.format(foreign) == sdy.format(ours)


@SOURCES
def test_a_module_is_not_partitioned_as_if_it_had_no_shardings(dialects: Callable[[], list[Dialect]]):
    foreign = read(TEXT, *dialects())
    sdy.partition(foreign)
    assert "%arg0: tensor<4x16xf32>" in sdy.format(foreign)


ASKED: dict[str, Callable[[ModuleOp], object]] = {
    "account": lambda module: str(sdy.account(module)),
    "auto": lambda module: sdy.auto(module, time_limit=2) and sdy.format(module),
    "interpret": lambda module: [
        each.tolist() for each in sdy.interpret(module, np.ones((8, 16), np.float32), np.ones((16, 4), np.float32))
    ],
    "lint": lambda module: str(sdy.lint(module)),
    "to_model_explorer": sdy.to_model_explorer,
}


@SOURCES
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_has_the_answer_of_a_module_of_ours(asked: str, dialects: Callable[[], list[Dialect]]):
    text = sdy.format(sdy.parse(TEXT), generic=True, debuginfo=True, local_scope=True)
    assert ASKED[asked](read(text, *dialects())) == ASKED[asked](sdy.parse(text))


def test_passes_of_xdsl_take_modules_of_ours():
    module = sdy.parse(TEXT.replace("dense<0.0", "dense<1.0"))
    CommonSubexpressionElimination().apply(Context(), module)
    module.verify()
    sdy.propagate(module)


def test_operations_of_other_dialects_keep_their_classes():
    module = read(TEXT.replace('"func.return"', '"test.op"() {kept = "so"} : () -> ()\n"func.return"', 1), test.Test)
    adopt(module)
    (kept,) = (op for op in module.walk() if isinstance(op, test.TestOp))
    assert kept.attributes["kept"] == StringAttr("so")


def test_a_module_of_ours_is_left_alone():
    module = sdy.parse(TEXT)
    before = list(module.walk())
    adopt(module)
    assert list(module.walk()) == before


def test_what_is_not_valid_is_refused_where_it_stands():
    wrong = read('"builtin.module"() ({ "sdy.mesh"() {sym_name = "mesh", mesh = 5 : i32} : () -> () }) : () -> ()')
    with pytest.raises(sdy.DiagnosticError, match=r"'sdy\.mesh' op"):
        sdy.propagate(wrong)
