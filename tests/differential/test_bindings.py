"""Conversion between modules of jaxlib's MLIR bindings and xDSL modules, compared with conversion through text."""

import pytest
from jax.interpreters import mlir
from jaxlib.mlir import ir

from corpus import PROGRAMS
from samples import sample
from sdy.passes.jax.bindings.from_bindings import module_from_bindings
from sdy.passes.jax.bindings.to_bindings import module_to_bindings
from sdy.text import format, parse

TEXTS = {
    "locations": """
        func.func @main(%a: tensor<2xf32> loc("a")) -> tensor<2xf32> {
          %0 = stablehlo.negate %a : tensor<2xf32> loc("f.py":1:2)
          %1 = stablehlo.negate %0 : tensor<2xf32> loc("f.py":1:2 to 3:4)
          %2 = stablehlo.negate %1 : tensor<2xf32> loc("jit(f)/neg"(callsite("f"("f.py":1:2 to :3) at "g"("g.py":4:5))))
          %3 = stablehlo.negate %2 : tensor<2xf32> loc(callsite("f" at callsite("g"("g.py":4:5) at unknown)))
          %4 = stablehlo.negate %3 : tensor<2xf32> loc(fused<"m">["f.py":1:2, "a at b"("c) at d":6:7)])
          %5 = stablehlo.negate %4 : tensor<2xf32> loc("say \\22f\\22 at"("a\\\\b.py":1:2))
          %6 = stablehlo.negate %5 : tensor<2xf32> loc(callsite("f.py":1:2 at "g.py":3:4))
          %7 = stablehlo.negate %6 : tensor<2xf32> loc(callsite(fused["f.py":1:2, "g.py":3:4] at "h" ))
          return %7 : tensor<2xf32>
        }""",
    "constants": """
        func.func @main() -> (tensor<2xcomplex<f32>>, tensor<0xcomplex<f64>>, tensor<complex<f32>>, tensor<3xi1>) {
          %0 = stablehlo.constant {mhlo.x = "a=b)"} dense<[(0.0, -0.0), (1.0, 0x7FC00001)]> : tensor<2xcomplex<f32>>
          %1 = stablehlo.constant dense<> : tensor<0xcomplex<f64>>
          %2 = stablehlo.constant dense<(2.0, 1.0)> : tensor<complex<f32>>
          %3 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
          %4 = stablehlo.constant dense<-0.0> : tensor<2xbf16>
          %5 = stablehlo.constant dense<[1, -2]> : tensor<2xi4>
          %6 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
          return %0, %1, %2, %3 : tensor<2xcomplex<f32>>, tensor<0xcomplex<f64>>, tensor<complex<f32>>, tensor<3xi1>
        }""",
    "resources": """
        func.func @main() -> tensor<2xi32> {
          %0 = stablehlo.constant dense_resource<r> : tensor<2xi32>
          return %0 : tensor<2xi32>
        }
        {-# dialect_resources: { builtin: { r: "0x040000000100000002000000" } } #-}""",
    "attributes": """
        module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.a = [1, "\\FF\\00", unit, @f::@g, {b = i32}]} {
          sdy.mesh @mesh = <["x"=2]>
          func.func private @declared(tensor<?xf32>) -> tuple<tensor<i1>, !stablehlo.token>
          func.func @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}) -> tensor<2xf32>
              attributes {no_inline} {
            %0 = "func.call"(%a) <{callee = @f, no_inline}> : (tensor<2xf32>) -> tensor<2xf32>
            return %0 : tensor<2xf32>
          }
          func.func private @f(%a: tensor<2xf32>) -> (tensor<2xf32> {jax.result_info = "r"}) {
            return %a : tensor<2xf32>
          }
        }""",
}


def in_full(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True))


def by_text(module: ir.Module) -> str:
    return format(parse(in_full(module)), generic=True, debuginfo=True)


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=15))
def test_a_program_comes_and_goes_as_its_text_says(name: str):
    lowered = PROGRAMS[name].lowered().compiler_ir("stablehlo")
    module = module_from_bindings(lowered)
    assert format(module, generic=True, debuginfo=True) == by_text(lowered)
    assert in_full(module_to_bindings(module, mlir.make_ir_context())) == in_full(lowered)


@pytest.mark.parametrize("name", TEXTS)
def test_texts_come_as_they_are(name: str):
    module = ir.Module.parse(TEXTS[name], mlir.make_ir_context())
    assert format(module_from_bindings(module), generic=True, debuginfo=True) == by_text(module)


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "resources"])
def test_texts_go_as_they_are(name: str):
    module = parse(TEXTS[name])
    text = format(module, generic=True, debuginfo=True)
    made = module_to_bindings(module, mlir.make_ir_context())
    assert in_full(made) == in_full(ir.Module.parse(text, mlir.make_ir_context()))
