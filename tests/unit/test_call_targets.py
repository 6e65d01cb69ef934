"""Sharding rules of custom calls as annotations, from Python and from files."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import jax
import numpy as np
import pytest
from jaxlib.cpu import _sparse

import sdy
from sdy.diagnostics import DiagnosticError
from sdy.rules import AnnotationError, annotate, register_custom_call
from sdy.rules.annotated_operations import annotate_from
from sdy.rules.elementwise import pointwise
from sdy.tools import sdy_auto, sdy_diff, sdy_lint, sdy_opt, sdy_report, sdy_run

RULE = "e, o, e, k n -> m n need_replication={e, o, k, m} blocked_propagation={e, o, k, m}"
"""The annotation of the product of a sparse CSR matrix and a dense one: only columns are independent."""


@pytest.fixture
def target() -> str:
    """Return a target with a CPU implementation but without a rule: the product of a sparse matrix."""
    name = f"product_{uuid4().hex}"
    ffi: Any = jax.ffi
    library: Any = _sparse
    ffi.register_ffi_target(name, library.registrations()["cpu_csr_sparse_dense_ffi"], platform="cpu")
    return name


def product(target: str, axes: int = 8) -> str:
    """Multiply a sparse matrix in CSR format (elements, row offsets, columns) by a dense one."""
    return f"""\
sdy.mesh @mesh = <["x"={axes}]>
func.func @main(%data: tensor<16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, %rows: tensor<13xi32>,
    %columns: tensor<16xi32>,
    %dense: tensor<10x24xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}}) -> tensor<12x24xf32> {{
  %0 = stablehlo.custom_call @{target}(%data, %rows, %columns, %dense) {{api_version = 4 : i32}} :
    (tensor<16xf32>, tensor<13xi32>, tensor<16xi32>, tensor<10x24xf32>) -> tensor<12x24xf32>
  return %0 : tensor<12x24xf32>
}}
"""


def test_each_device_calls_the_target_on_its_shards(target: str):
    annotate(f"@{target}", RULE)
    module = sdy.parse(product(target))
    sdy.propagate(module)
    sdy.partition(module)
    text = sdy.format(module)
    assert "tensor<13xi32>, tensor<16xi32>, tensor<10x3xf32>) -> tensor<12x3xf32>" in text
    assert text.count("stablehlo.all_gather") == 1  # of the elements, which must be replicated
    generator = np.random.default_rng(0)
    data, dense = (generator.standard_normal(shape, np.float32) for shape in ((16,), (10, 24)))
    columns = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], np.int32)
    rows = np.array([0, 2, 2, 3, 6, 7, 8, 10, 11, 12, 13, 14, 16], np.int32)
    expected = np.zeros((12, 24), np.float32)
    for row in range(12):
        for place in range(rows[row], rows[row + 1]):
            expected[row] += data[place] * dense[columns[place]]
    (result,) = sdy.compile(module)(data, rows, columns, dense)
    assert result.addressable_shards[0].data.shape == (12, 3)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


def test_a_registered_rule_is_not_replaced(target: str):
    annotate(f"@{target}", RULE)
    known = re.escape(f"custom calls of @{target} have a sharding rule already")
    with pytest.raises(ValueError, match=known):
        annotate(f"@{target}", "... -> ...")
    with pytest.raises(ValueError, match=known):
        register_custom_call(target)(pointwise)
    with pytest.raises(ValueError, match="custom calls of @Eigh have a sharding rule already"):
        annotate("@Eigh", "i j -> i j, i")
    with pytest.raises(ValueError, match="no rule fits all custom calls of @tpu_custom_call"):
        annotate("@tpu_custom_call", "i j -> i j")


def test_an_invalid_annotation_registers_nothing(target: str):
    with pytest.raises(AnnotationError):
        annotate(f"@{target}", "i j")
    annotate(f"@{target}", RULE)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("new: i -> i reduction={k}", 6, "factor 'k' is in `reduction`, but in no tensor"),
        ("new:", 5, "write `operands -> results`"),
        ("  new:  i j) -> i", 12, "close each parenthesis in its dimension, and open it first"),
        ("@new: i -> i", 1, "write `target: operands -> results`"),
        (" new i -> i", 2, "write `target: operands -> results`"),
        ("new:i -> i", 1, "write `target: operands -> results`"),
        ("Cholesky: i j -> i j", 1, "custom calls of @Cholesky have a sharding rule already"),
    ],
)
def test_errors_in_a_file_have_a_location(text: str, column: int, message: str):
    with pytest.raises(DiagnosticError) as caught:
        annotate_from(f"# rules\n\n{text}  # new\n", "kernels.rules")
    place, line, caret = str(caught.value).split("\n")
    assert place == f"kernels.rules:3:{column}: error: {message}"
    assert (line, caret) == (f"{text}  # new", " " * (column - 1) + "^")


def test_a_duplicate_target_in_a_file_is_an_error(target: str):
    with pytest.raises(DiagnosticError, match=f"^rules:3:1: error: custom calls of @{target} have a sharding rule"):
        annotate_from(f"{target}: {RULE}\n\n{target}: {RULE}", "rules")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (sdy_auto.main, ["PROGRAM", "--time-limit", "1"]),
        (sdy_diff.main, ["PROGRAM", "PROGRAM"]),
        (sdy_lint.main, ["PROGRAM", "--large", "1"]),
        (sdy_opt.main, ["PROGRAM", "-sdy-propagation-pipeline", "-sdy-partition-pipeline"]),
        (sdy_report.main, ["PROGRAM", "-o", "-"]),
        (sdy_run.main, ["PROGRAM", "--no-check"]),
    ],
)
def test_tools_accept_a_file_of_rules(
    tool: Callable[[list[str]], int],
    words: list[str],
    target: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    program, rules = tmp_path / "program.mlir", tmp_path / "kernels.rules"
    program.write_text(product(target))
    rules.write_text(f"{target}: {RULE}")
    tool([word.replace("PROGRAM", str(program)) for word in [*words, f"--custom-call-rules={rules}"]])
    told = capsys.readouterr()
    assert told.out
    assert "warning: " not in told.err
    with pytest.raises(ValueError, match="have a sharding rule already"):
        annotate(f"@{target}", RULE)
