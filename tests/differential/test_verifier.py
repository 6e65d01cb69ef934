"""The verifier reports errors even where it has memoized the verification of similar operations."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from jax_programs import PROGRAMS, lowered
from oracle import OracleError, oracle
from sdy.diagnostics import DiagnosticError, Location
from sdy.ir.operation_key import is_verified_by_key
from sdy.stablehlo import STABLEHLO
from sdy.stablehlo.chlo import CHLO
from sdy.text import context, parse, verify

LIT_TESTS = Path(__file__).parents[2] / "lit_tests" / "stablehlo"


def in_function(*lines: str) -> str:
    body = "\n".join(lines)
    return f"func.func @f(%a: tensor<4xf32>, %b: tensor<5xf32>, %n: tensor<i32>) {{\n{body}\nreturn\n}}"


def refusal(*lines: str) -> tuple[str, Location | None]:
    with pytest.raises(DiagnosticError) as caught:
        parse(in_function(*lines), "f.mlir")
    return caught.value.message, caught.value.where


GOOD = '%0 = "stablehlo.add"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>'


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            '%1 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>',
            "'stablehlo.add' op requires the same shape for all operands and results",
        ),
        (
            '%1 = "stablehlo.add"(%a) : (tensor<4xf32>) -> tensor<4xf32>',
            "'stablehlo.add' op expected 2 operands, but found 1",
        ),
        (
            '%1 = "stablehlo.add"(%a, %a) ({}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
            "'stablehlo.add' op requires zero regions",
        ),
        (
            '%1:2 = "stablehlo.add"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)',
            "'stablehlo.add' op requires one result",
        ),
    ],
)
def test_a_bad_operation_after_a_good_one_is_refused(bad: str, message: str):
    assert refusal(GOOD, bad) == (message, Location("f.mlir", 3, 8 if ":2" in bad else 6))


REDUCTION = """%{}:2 = "stablehlo.reduce"(%a, %a, %z, %z) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<f32>, %v: tensor<f32>):
    {}
    "stablehlo.return"({}) : ({}) -> ()
}}) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)"""
ZERO = "%z = stablehlo.constant dense<0.0> : tensor<f32>"
BOTH = "tensor<f32>, tensor<f32>"


@pytest.mark.parametrize(
    ("computed", "returned", "types", "message"),
    [
        ("", "%x, %y", BOTH, None),
        ("%r = stablehlo.add %x, %u : tensor<f32>", "%r, %y", BOTH, None),
        ("", "%x, %z", BOTH, None),
        ("", "%x", "tensor<f32>", "Reduction-region here must produce 2 tensors, but produces 1 instead"),
        (
            "%r = stablehlo.convert %x : (tensor<f32>) -> tensor<f16>",
            "%r, %y",
            "tensor<f16>, tensor<f32>",
            "The type of reduction-region's parameter at index 0 is different than the corresponding result type: "
            "'tensor<f32>' vs 'tensor<f16>'",
        ),
    ],
)
def test_another_body_after_a_good_one_is_looked_at(computed: str, returned: str, types: str, message: str | None):
    lines = ZERO, REDUCTION.format("g", "", "%x, %y", BOTH), REDUCTION.format("h", computed, returned, types)
    if message is None:
        parse(in_function(*lines))
    else:
        assert refusal(*lines)[0] == message


def test_linalg_without_the_operands_of_its_body_is_refused():
    text = """
    func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %0 = linalg.matmul ins(%x : tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }
    """
    with pytest.raises(DiagnosticError, match=r"custom op 'linalg\.matmul' has too few operands"):
        parse(text)


def test_linalg_counts_loops_that_there_are():
    text = """
    func.func @f(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
      %0 = linalg.generic {
        indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
      } ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %row = linalg.index 1 : index
        linalg.yield %a : f32
      } -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    parse(text.replace("linalg.index 1", "linalg.index 0"))
    with pytest.raises(DiagnosticError, match=r"expected dim \(1\) to be lower than the number of loops \(1\)"):
        parse(text)


def test_linalg_reduces_dimensions_that_there_are():
    text = """
    func.func @f(%x: tensor<8x4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
      %0 = linalg.reduce ins(%x : tensor<8x4xf32>) outs(%y : tensor<8xf32>) dimensions = [2]
      (%a: f32, %b: f32) {
        %1 = arith.maximumf %a, %b : f32
        linalg.yield %1 : f32
      }
      return %0 : tensor<8xf32>
    }
    """
    parse(text.replace("[2]", "[1]"))
    with pytest.raises(DiagnosticError, match=r"dimensions for reduction should be in the range \[0, 1\]"):
        parse(text)


def test_a_sharding_that_was_right_is_wrong_where_its_axis_is_bound():
    text = """
    sdy.mesh @mesh = <["a"=2]>
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
      %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
      %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>]
          manual_axes={"a"} (%y: tensor<8xf32>) {
        %3 = stablehlo.abs %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<8xf32>
        sdy.return %3 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      return %2 : tensor<8xf32>
    }"""
    with pytest.raises(DiagnosticError, match="already bound by a parent"):
        parse(text)


def test_a_module_that_was_right_is_refused_when_it_is_changed():
    module = parse(in_function(GOOD, GOOD.replace("%0", "%1")))
    _, second = (op for op in module.walk() if op.name == "stablehlo.add")
    block = second.parent
    assert block is not None
    second.operands[1] = block.args[1]
    with pytest.raises(DiagnosticError, match="requires the same shape"):
        verify(module)


# Visibility of values


def case(*bodies: str) -> str:
    regions = ", ".join(f"{{\n{body}\nstablehlo.return\n}}" for body in bodies)
    return f'"stablehlo.case"(%n) ({regions}) : (tensor<i32>) -> ()'


def hidden_by(module: str) -> tuple[str, str]:
    with pytest.raises(DiagnosticError) as caught:
        parse(module)
    (note,) = caught.value.notes
    return caught.value.message, note.message


def test_a_value_is_not_seen_before_it_is_defined():
    text = in_function("%1 = stablehlo.negate %0 : tensor<4xf32>", "%0 = stablehlo.negate %a : tensor<4xf32>")
    assert hidden_by(text) == ("operand #0 does not dominate this use", "operand defined here (op in the same block)")


def test_a_value_is_not_seen_in_an_operation_before_it():
    text = in_function(case("%1 = stablehlo.negate %0 : tensor<4xf32>"), "%0 = stablehlo.negate %a : tensor<4xf32>")
    assert hidden_by(text) == ("operand #0 does not dominate this use", "operand defined here (op in a parent region)")


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside", "after"])
def test_a_value_is_not_seen_in_another_region_or_after_its_own(is_beside: bool):
    negation = "%0 = stablehlo.negate %a : tensor<4xf32>"
    body = [case(negation, negation)] if is_beside else [case(negation), negation]
    module = parse(in_function(*body))
    inside, user = (op for op in module.walk() if op.name == "stablehlo.negate")
    user.operands[0] = inside.results[0]
    with pytest.raises(DiagnosticError, match="operand #0 does not dominate this use"):
        verify(module)


def test_a_terminator_is_the_last_of_its_block():
    message, _ = refusal('"func.return"() : () -> ()', GOOD)
    assert message == "'func.return' op must be the last operation in the parent block"


@pytest.mark.parametrize(
    ("signature", "kind"),
    [
        ('(%a: tensor<8xf32> {sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> tensor<8xf32>', "arguments"),
        ("(%a: tensor<8xf32> {sdy.used}) -> (tensor<8xf32> {donated})", "results"),
    ],
)
def test_arguments_and_results_of_functions_have_attributes_of_dialects(signature: str, kind: str):
    """A sharding under the name `sharding` is an error as in MLIR, rather than ignored."""
    text = f"func.func @main{signature} {{\n  return %a : tensor<8xf32>\n}}\n"
    message = f"'func.func' op {kind} may only have dialect attributes"
    with pytest.raises(DiagnosticError) as caught:
        parse(text, "f.mlir")
    assert (caught.value.message, caught.value.where) == (message, Location("f.mlir", 1, 1))
    with pytest.raises(OracleError, match=message):
        oracle(text)


# Memoized checks of many operations


class Sealed(SSAValue[Attribute]):
    """A value that raises if anything but its type is read."""

    @property
    def owner(self) -> Operation | Block:
        raise AssertionError("it looks at what defines an operand")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def programs() -> Iterator[ModuleOp]:
    for name in PROGRAMS:
        yield parse(lowered(name).pretty)
    for path in sorted(LIT_TESTS.glob("*.mlir")):
        for part in path.read_text().split("// -----\n"):
            if "expected-error" not in part:
                yield parse(part, ctx=context(allow_unregistered=True))


def test_memoized_verifiers_read_only_types_and_attributes():
    verified: set[str] = set()
    for module in programs():
        for op in module.walk():
            if is_verified_by_key(type(op)):
                alone = op.clone({operand: Sealed(operand.type) for operand in op.operands})
                alone.verify_()
                verified.add(op.name)
    assert {"stablehlo.add", "stablehlo.dot_general", "chlo.erf"} <= verified
    known = {op.name for op in (*STABLEHLO.operations, *CHLO.operations) if is_verified_by_key(op)}
    assert len(verified) > 0.9 * len(known)


def test_an_operation_with_regions_is_asked_itself():
    operations = {op.name: op for op in STABLEHLO.operations}
    assert not any(map(is_verified_by_key, (operations["stablehlo.reduce"], operations["stablehlo.while"])))
    assert is_verified_by_key(operations["stablehlo.return"])


def test_use_before_definition_inside_an_operation_is_refused_as_by_mlir():
    text = """
    func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
      %0:2 = stablehlo.while(%a = %1, %b = %x) : tensor<7xf32>, tensor<7xf32>
      cond {
        %c = stablehlo.constant dense<true> : tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %1 = stablehlo.add %a, %b : tensor<7xf32>
        stablehlo.return %a, %1 : tensor<7xf32>, tensor<7xf32>
      }
      return %0#1 : tensor<7xf32>
    }
    """
    with pytest.raises(DiagnosticError, match="operation's operand is unlinked"):
        parse(text)
    with pytest.raises(OracleError, match="operation's operand is unlinked"):
        oracle(text, "canonicalize")
