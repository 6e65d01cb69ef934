"""Passes and reports on programs in text run without jax and scipy; other functions raise with the install command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from descent_programs import train_step

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer.mlir"

STEP = f"""
sdy.mesh @mesh = <["data"=4, "model"=2]>
{train_step(1, 2**16, 1024, 1024)}
""".replace(
    "%z0: tensor<65536x1024xf32>", '%z0: tensor<65536x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}'
)
"""A layer whose batch is sharded in one operand and replicated in the other: lint tries fixes, and finds one."""

SLICES = Path(__file__).parents[2] / "lit_tests" / "communication" / "keep_own_slices.mlir"

GAUSSIAN = """
open("gaussian.mlir", "w").write('''
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = chlo.erf %0 : tensor<f32> -> tensor<f32>
  return %1 : tensor<f32>
}
''')
"""

HIDDEN = ("jax", "jaxlib", "scipy", "numba", "dask", "torch", "torchax")

WITHOUT = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HIDDEN}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)

sys.meta_path.insert(0, Hidden())
"""


def without_jax(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process that cannot import the packages of extras."""
    command = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=folder)


def tool(name: str, *words: str) -> str:
    return (
        f"from sdy.tools.entry import run_command\nsys.exit(run_command({name!r}, {[str(word) for word in words]!r}))"
    )


COMMANDS: dict[str, list[str]] = {
    "opt": ["-sdy-propagation-pipeline", "-sdy-partition-pipeline", str(EXAMPLE)],
    "opt, another pass": ["-sdy-keep-own-slices", str(SLICES)],
    "lint": ["step.mlir"],
    "diff": [str(EXAMPLE), str(EXAMPLE)],
    "report": ["step.mlir", "-o", "report.html"],
    "auto": ["step.mlir"],
}

FUNCTIONS = f"""
import sdy
module = sdy.parse(open({str(EXAMPLE)!r}).read())
sdy.propagate(module)
print(sdy.explain(module, '%84'))
sdy.partition(module)
sdy.format(module)
"""


def test_text_needs_no_jax(tmp_path: Path) -> None:
    """One process, which cannot import jax, runs all commands."""
    (tmp_path / "step.mlir").write_text(STEP)
    commands = [(name.partition(",")[0], words) for name, words in COMMANDS.items()]
    code = (
        "import json\nfrom sdy.tools.entry import run_command\n"
        f"found = [run_command(*command) for command in {commands!r}]\n"
        f"{FUNCTIONS}\nprint(json.dumps(found))"
    )
    done = without_jax(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    statuses = json.loads(done.stdout.splitlines()[-1])
    assert dict(zip(COMMANDS, statuses, strict=True)) == {
        name: int(name == "lint") for name in COMMANDS
    }  # it has findings


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (tool("run", str(EXAMPLE)), "sdy-run needs jax, which is not installed: pip install 'sdy[jax]'"),
        (
            GAUSSIAN + tool("interpret", "gaussian.mlir"),
            "sdy-interpret needs scipy, which is not installed: pip install 'sdy[jax]'",
        ),
        ("import sdy\nsdy.jit", "sdy.jit needs jax, which is not installed: pip install 'sdy[jax]'"),
        (
            "import sdy\nsdy.torch.forward",
            "sdy.torch.forward needs torch, which is not installed: pip install 'sdy[torch]'",
        ),
    ],
)
def test_missing_extra_is_explained(code: str, told: str, tmp_path: Path) -> None:
    done = without_jax(code, tmp_path)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(told)
    assert "sdy-" not in told or "Traceback" not in done.stderr


def test_bytecode_says_what_it_takes(tmp_path: Path) -> None:
    missing = tmp_path / "jaxlib"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'jaxlib'\", name='jaxlib')\n")
    command = [sys.executable, "-c", "import sys\n" + tool("opt", str(EXAMPLE), "--emit-bytecode")]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 2
    assert "this requires jaxlib, which is not installed: pip install 'sdy[jax]'" in done.stderr
    assert "Traceback" not in done.stderr
