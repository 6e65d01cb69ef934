"""Custom calls in files: libraries of known targets are loaded, and unknown targets are reported with a location."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import forked_commands
import sdy
from sdy.diagnostics import DiagnosticError
from sdy.tools import sdy_blocks, sdy_run

X = jax.ShapeDtypeStruct((2, 4, 4), np.float32)


def _positive(x: jax.Array) -> jax.Array:
    return x @ x.mT + jnp.eye(4)


def _decompositions(x: jax.Array) -> Any:
    return (
        jnp.linalg.qr(x),
        lax.linalg.lu(x),
        jnp.linalg.cholesky(_positive(x)),
        lax.linalg.triangular_solve(_positive(x), x),
        jnp.linalg.eigh(_positive(x))[0],
        jnp.linalg.svd(x, compute_uv=False),
        jnp.linalg.inv(_positive(x)),
        jnp.linalg.slogdet(_positive(x)),
    )


def _sparse(x: jax.Array) -> Any:
    """Multiply a sparse matrix whose row i has one element, x[0, 0, i] in column i."""
    call = jax.ffi.ffi_call("cpu_csr_sparse_dense_ffi", jax.ShapeDtypeStruct((4, 4), np.float32))
    return call(x[0, 0], np.arange(5, dtype=np.int32), np.arange(4, dtype=np.int32), x[1])


def _of_xla(x: jax.Array) -> Any:
    return lax.approx_max_k(x, 2), lax.top_k(x, 2), jax.random.normal(jax.random.key(0), (4,)), jnp.fft.fft(x)


@pytest.mark.parametrize("function", [_decompositions, _sparse, _of_xla])
def test_fresh_process_runs_custom_calls_of_libraries(function: Callable[[jax.Array], Any], tmp_path: Path):
    """This process cannot test it: jax has loaded the libraries when lowering the program."""
    path = tmp_path / "program.mlir"
    path.write_text(jax.jit(function).lower(X).as_text())
    done = forked_commands.run(["-m", "sdy", "run", path, "--check"])
    assert done.returncode == 0, done.stderr
    assert "largest difference from the unpartitioned program" in done.stdout


def calling(target: str, version: int = 4) -> str:
    return f"""\
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.custom_call @Sharding(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @{target}(%0) {{api_version = {version} : i32}} : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}}
"""


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("target", ["no_such_target", '"a name of words"', "cusolver_geqrf_ffi"])
@pytest.mark.parametrize("compile_", [sdy.compile, sdy.passes.jax.api.compile.compile_unpartitioned])
def test_a_target_that_no_library_has_is_told_with_its_place(target: str, version: int, compile_: Callable[[Any], Any]):
    with pytest.raises(DiagnosticError) as caught:
        compile_(sdy.parse(calling(target, version), "unknown.mlir"))
    assert str(caught.value).startswith("unknown.mlir:3:8: error: 'stablehlo.custom_call' op calls @")
    assert target.strip('"') in caught.value.message


@pytest.mark.parametrize("tool", [sdy_run.main, sdy_blocks.main])
def test_a_tool_tells_the_place_in_the_file(
    tool: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "unknown.mlir"
    path.write_text(calling("no_such_target"))
    assert tool([str(path)]) == 2
    assert f"{path}:3:8: error: 'stablehlo.custom_call' op calls @no_such_target" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["Sharding", "annotate_device_placement", "LayoutConstraint"])
def test_targets_compiled_by_xla_need_no_library(target: str):
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(sdy.compile(sdy.parse(calling(target, 1)))(x)[0], x)
