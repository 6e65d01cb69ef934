"""The flag --import of each tool that reads a program: modules that register operators."""

from importlib import import_module
from pathlib import Path

import pytest

KERNELS = """
import jax, sdy
@sdy.register_op("a b -> a b", name="{name}")
def function(x: jax.Array) -> jax.Array:
    return x + x
"""

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%0: tensor<8x2xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x2xf32> {{
  %1 = stablehlo.custom_call @f(%0) {{sdy.operator = "{name}()",
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {{i=8, j=2}}, custom>}}
    : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}}
"""

TOOLS = {
    "opt": ["PROGRAM", "-sdy-propagation-pipeline", "-sdy-partition-pipeline"],
    "report": ["PROGRAM", "-o", "report.html"],
    "lint": ["PROGRAM"],
    "diff": ["PROGRAM", "PROGRAM"],
    "interpret": ["PROGRAM"],
    "run": ["PROGRAM"],
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_import_what_registers_operators(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    name = f"imported_for_{tool}"
    (tmp_path / f"kernels_{tool}.py").write_text(KERNELS.format(name=name))
    (tmp_path / "program.mlir").write_text(PROGRAM.format(name=name))
    monkeypatch.chdir(tmp_path)
    main = import_module(f"sdy.tools.sdy_{tool}").main
    words = [word.replace("PROGRAM", "program.mlir") for word in TOOLS[tool]]
    if tool == "interpret":
        import numpy as np

        np.savez("inputs.npz", np.ones((8, 2), np.float32))
        words += ["--inputs", "inputs.npz"]
    assert main([*words, f"--import=kernels_{tool}"]) == 0


WRONG = {
    "missing_module": "error: cannot import 'missing_module': ModuleNotFoundError: No module named 'missing_module'",
    "missing.py": "error: cannot import 'missing.py': FileNotFoundError: no file missing.py",
    "broken.py": "error: cannot import 'broken.py': ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("name", WRONG)
def test_an_import_that_fails_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("1 / 0")
    Path("program.mlir").write_text(PROGRAM.format(name="unknown"))
    main = import_module("sdy.tools.sdy_opt").main
    assert main(["program.mlir", "--import", name]) != 0
    assert WRONG[name] in capsys.readouterr().err
