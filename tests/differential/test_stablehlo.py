"""The StableHLO and CHLO dialects: text that MLIR prints round-trips, and text that MLIR refuses is refused."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import jax
import pytest
from jaxlib.mlir import ir
from xdsl.traits import ConstantLike, Pure, is_side_effect_free
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from covered_operations import COVERED, SWITCHED_OFF_IN_JAX
from jax_programs import PROGRAMS, Lowered, lowered, printed_by_mlir
from refused_operations import HEADER, REFUSED
from sdy.diagnostics import Diagnostic, DiagnosticError, Location, Severity
from sdy.dialect.interfaces import Elementwise, ShardableDataFlow
from sdy.passes.driver import read, split
from sdy.stablehlo import STABLEHLO
from sdy.stablehlo.chlo import CHLO
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import CaseOp, WhileOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.reducing_collectives import AllReduceOp
from sdy.text import format as print_module
from sdy.text import parse
from sdy.tools.expected_diagnostics import mismatches

_FOLDER = Path(__file__).parents[2] / "lit_tests" / "stablehlo"
_UNKNOWN_TO_JAXLIB = ("!quant.", "#sparse_tensor.", "stablehlo.collective_reduce")
_TEXTS = {path: path.read_text() for path in sorted(_FOLDER.glob("*.mlir"))}
_LIT_TESTS = [path for path, text in _TEXTS.items() if not any(unknown in text for unknown in _UNKNOWN_TO_JAXLIB)]

REFUSING_TESTS = [path for path in _LIT_TESTS if "-verify-diagnostics" in _TEXTS[path]]
PRINTING_TESTS = [path for path in _LIT_TESTS if path not in REFUSING_TESTS]


def assert_printed_alike(texts: Lowered) -> None:
    assert print_module(parse(texts.pretty)).strip() == texts.pretty.strip()
    assert print_module(parse(texts.generic), generic=True).strip() == texts.generic.strip()
    assert print_module(parse(texts.generic)).strip() == texts.pretty.strip()


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_program_is_printed_as_mlir_does(name: str):
    assert_printed_alike(lowered(name))


@pytest.mark.parametrize("path", PRINTING_TESTS, ids=lambda path: path.stem)
def test_rare_operations_are_printed_as_mlir_does(path: Path):
    assert_printed_alike(printed_by_mlir(path.read_text()))


def test_every_operation_is_shown_by_a_program_of_jax_or_by_a_lit_test():
    operations = {op.name for op in (*STABLEHLO.operations, *CHLO.operations)}
    assert set(COVERED) <= operations
    printed = "\n".join(text for text in _TEXTS.values() if "-verify-diagnostics" not in text)
    for operation in operations:
        text = lowered(COVERED[operation]).generic if operation in COVERED else printed
        assert re.search(rf"\b{re.escape(operation)}\b", text), f"{operation} is not shown"


def test_jax_names_no_operation_that_its_programs_do_not_show():
    sources = "".join(path.read_text() for path in Path(jax.__file__).parent.glob("_src/**/*.py"))
    code = re.sub(r"#.*", "", sources)
    named: set[str] = set()
    for dialect, abbreviation in (("stablehlo", "hlo"), ("chlo", "chlo")):
        mentioned = set(re.findall(rf"\b{abbreviation}\.(\w+)", code))
        for name, builder in vars(import_module(f"jaxlib.mlir.dialects.{dialect}")).items():
            # Python keywords, such as `and`, have a trailing underscore.
            operation = getattr(builder, "OPERATION_NAME", None)
            if isinstance(operation, str):
                mnemonic = operation.partition(".")[2]
                if {name, mnemonic, f"{mnemonic}_"} & mentioned:
                    named.add(operation)
    assert len(named) > 100
    shown = {
        operation
        for name in PROGRAMS
        for operation in re.findall(r'"((?:stablehlo|chlo)\.\w+)"', lowered(name).generic)
    }
    assert named - shown <= set(SWITCHED_OFF_IN_JAX)


@pytest.mark.parametrize("path", REFUSING_TESTS, ids=lambda path: path.stem)
def test_lit_tests_expect_mlir_diagnostics(path: Path):
    for part in split(read(str(path))):
        said: list[Diagnostic] = []
        try:
            printed_by_mlir(part.text)
        except ir.MLIRError as refused:
            said += [_diagnostic(part.name, diagnostic) for diagnostic in cast(Any, refused).error_diagnostics]
        assert [wrong.render() for wrong in mismatches(part, said)] == []


def _diagnostic(name: str, said: Any) -> Diagnostic:
    place = re.fullmatch(r'loc\(".*":(\d+):(\d+)\)', str(said.location))
    assert place is not None
    return Diagnostic(Severity.ERROR, Location(name, int(place[1]), int(place[2])), said.message)


@pytest.mark.parametrize("operation", REFUSED)
def test_refused_in_the_words_of_mlir(operation: str):
    text = f"{HEADER}  %0 = {operation}\n  return\n}}"
    with pytest.raises(ir.MLIRError) as theirs:
        printed_by_mlir(text)
    with pytest.raises(DiagnosticError) as ours:
        parse(text)
    assert re.sub(r"^'[\w.]+' op ", "", ours.value.message) in str(theirs.value)


def test_unknown_operation_is_named():
    with pytest.raises(DiagnosticError, match=r"'stablehlo\.newer'"):
        parse('"stablehlo.newer"() : () -> ()')


def test_traits_say_what_passes_ask():
    operations = {op.name: op for op in (*STABLEHLO.operations, *CHLO.operations)}
    elementwise = {name for name, op in operations.items() if op.has_trait(Elementwise)}
    assert {"stablehlo.add", "stablehlo.tanh", "stablehlo.compare", "chlo.erf"} <= elementwise
    assert not {"stablehlo.dot_general", "stablehlo.reshape", "stablehlo.reduce", "stablehlo.iota"} & elementwise
    assert {name for name, op in operations.items() if op.has_trait(ConstantLike)} == {
        "stablehlo.constant",
        "chlo.constant",
    }
    assert {name for name, op in operations.items() if op.has_trait(ShardableDataFlow)} == {
        "stablehlo.while",
        "stablehlo.case",
        "stablehlo.if",
        "stablehlo.optimization_barrier",
    }
    assert not AllReduceOp.has_trait(Pure)


def test_side_effects_follow_regions_and_attributes():
    module = parse("""
    func.func @f(%p: tensor<i32>, %a: tensor<4xf32>) {
      %0 = stablehlo.custom_call @pure(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "stablehlo.case"(%p) ({
        %3 = stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %3 : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      return
    }""")
    pure, printing, *_ = (op for op in module.walk() if isinstance(op, CustomCallOp))
    (case,) = (op for op in module.walk() if isinstance(op, CaseOp))
    assert is_side_effect_free(pure)
    assert is_trivially_dead(pure)
    assert not is_side_effect_free(printing)
    assert not is_side_effect_free(case)


def test_data_flow_edges_of_a_loop():
    module = parse(lowered("while").pretty)
    (loop,) = (op for op in module.walk() if isinstance(op, WhileOp))
    flow = loop.get_trait(ShardableDataFlow)
    assert flow is not None
    owner = loop.results[1]
    sources = flow.edge_sources(loop, owner)
    assert [(use.operation.name, use.index) for use in sources] == [("stablehlo.while", 1), ("stablehlo.return", 1)]
    assert flow.non_owner_targets(loop, owner) == (loop.cond.block.args[1], loop.body.block.args[1])
    assert all(flow.edge_owner_from_target(loop, target) is owner for target in flow.non_owner_targets(loop, owner))


def test_constant_folds_to_its_value():
    module = parse("func.func @f() { %0 = stablehlo.constant dense<1> : tensor<4xi32> return }")
    (constant,) = (op for op in module.walk() if isinstance(op, ConstantOp))
    assert ConstantLike.get_constant_value(constant.output) == constant.value
