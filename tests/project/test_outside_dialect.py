"""A dialect registered by another package's entry points: parsed, propagated, partitioned and interpreted."""

from pathlib import Path

import numpy as np
import pytest

from outside_packages import installed, run
from wheels import make_wheel

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("outside dialect")

EXAMPLE = Path(__file__).parents[2] / "examples/dialect_from_outside"
ROWS = EXAMPLE / "rows.mlir"
OPT = ["-m", "sdy", "opt"]
INTERPRET = ["-m", "sdy", "interpret"]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an import path with the files of the example package's wheel."""
    return make_wheel(EXAMPLE, tmp_path_factory.mktemp("example") / "installed")


def test_it_is_read_and_printed(example: Path):
    done = run([*OPT, str(ROWS)], example)
    assert done.stderr == ""
    assert "%0 = norm.rms %arg0, %arg1 : tensor<16x64xf32>, tensor<64xf32>" in done.stdout


def test_without_the_package_it_is_refused(tmp_path: Path):
    done = run([*OPT, str(ROWS)], tmp_path)
    assert "Dialect `norm' not found for custom op 'norm.rms'" in done.stderr
    assert done.returncode == 2


def test_shardings_pass_by_its_rule(example: Path):
    done = run([*OPT, "-sdy-propagation-pipeline", str(ROWS)], example)
    assert done.stderr == ""
    # The rows stay sharded; "y", which would shard each row, is not propagated through the operation.
    assert 'stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}' in done.stdout


def test_each_device_computes_it_on_its_rows(example: Path):
    done = run([*OPT, "-sdy-propagation-pipeline", "-sdy-partition-pipeline", str(ROWS)], example)
    assert done.stderr == ""
    (gather,) = (line for line in done.stdout.splitlines() if "all_gather" in line)
    assert "(tensor<4x32xf32>) -> tensor<4x64xf32>" in gather
    assert ": tensor<4x64xf32>, tensor<64xf32>" in done.stdout


def test_the_interpreter_gives_of_all_devices_what_one_gives(example: Path):
    check = f"""
import numpy as np, sdy
module = sdy.parse(open({str(ROWS)!r}).read())
x, weight = np.arange(1024, dtype=np.float32).reshape(16, 64) - 500, np.linspace(1, 2, 64, dtype=np.float32)
expected = np.tanh(x / np.sqrt((x * x).mean(-1, keepdims=True)) * weight)
np.testing.assert_allclose(sdy.interpret(module, x, weight)[0], expected, rtol=1e-5)
sdy.propagate(module)
sdy.partition(module)
np.testing.assert_allclose(sdy.interpret(module, x, weight)[0], expected, rtol=1e-5)
"""
    done = run(["-c", check], example)
    assert done.stderr == ""


def test_an_elementwise_one_is_computed_in_parts_of_uneven_sizes(tmp_path: Path):
    installed(tmp_path, "twice-it", ELEMENTWISE, "sdy.dialects", twice="twice_it:load")
    uneven = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<10xf32> {
  %0 = stablehlo.slice %x [0:10] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
      : (tensor<12xf32>) -> tensor<10xf32>
  %1 = twice.it %0 : tensor<10xf32>
  return %1 : tensor<10xf32>
}
"""
    done = run([*OPT, "-sdy-propagation-pipeline", "-sdy-partition-pipeline", "-"], tmp_path, uneven)
    assert done.stderr == ""
    (line,) = (line for line in done.stdout.splitlines() if "twice.it" in line)
    assert line.endswith(": tensor<3xf32>")


def test_what_cannot_be_run_by_xla_is_refused_where_it_stands(example: Path):
    done = run(["-m", "sdy", "run", str(ROWS)], example)
    assert f"{ROWS}:4:8: error: 'norm.rms' op belongs to a dialect that XLA does not know" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_a_module_that_is_made_in_python_finds_its_rule(example: Path):
    check = """
from rms_norm.dialect import RmsOp
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.test import TestOp
from sdy.rules import sharding_rule
x, weight = TestOp(result_types=[TensorType(f32, [16, 64]), TensorType(f32, [64])]).results
rule = sharding_rule(RmsOp(operands=[x, weight], result_types=[x.type]))
print(rule.operands, rule.results, rule.need_replication)
"""
    done = run(["-c", check], example)
    assert done.stdout == "(((0,), (1,)), ((1,),)) (((0,), (1,)),) (1,)\n"


def test_what_is_computed_has_the_shape_of_the_result(tmp_path: Path):
    module = (EXAMPLE / "rms_norm/dialect.py").read_text()
    wrong = module.replace("    return x / np.sqrt(", "    x = x[:3]\n    return x / np.sqrt(")
    installed(tmp_path, "wrong-shape", wrong, "sdy.dialects", norm="wrong_shape:load")
    np.savez(tmp_path / "inputs.npz", np.ones((16, 64), np.float32), np.ones(64, np.float32))
    done = run([*INTERPRET, str(ROWS), "--inputs", str(tmp_path / "inputs.npz")], tmp_path)
    assert f"{ROWS}:4:8: error: 'norm.rms' op has a result of shape [16, 64], but [3, 64] was computed" in done.stderr


ELEMENTWISE = """
from typing import ClassVar
from xdsl.ir import Dialect
from xdsl.dialects.builtin import TensorType
from xdsl.irdl import IRDLOperation, VarConstraint, base, irdl_op_definition, operand_def, result_def, traits_def
from sdy.dialect.interfaces import Elementwise
from sdy.rules import annotate

@irdl_op_definition
class ItOp(IRDLOperation):
    name = "twice.it"
    T: ClassVar = VarConstraint("T", base(TensorType))
    x = operand_def(T)
    result = result_def(T)
    traits = traits_def(Elementwise())
    assembly_format = "$x attr-dict `:` type($x)"

def load():
    annotate("twice.it", "... -> ...")
    return Dialect("twice", [ItOp], [])
"""


NO_FUNCTION = "load = 5"
NO_DIALECT = "def load(): return 5"
FAILS = "def load(): raise OSError('no such driver')"
OTHER_NAME = "from xdsl.ir import Dialect\ndef load(): return Dialect('other', [], [])"


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (NO_FUNCTION, "failed with TypeError: 'int' object is not callable"),
        (NO_DIALECT, "returned 5; expected an xDSL Dialect"),
        (FAILS, "failed with OSError: no such driver"),
        (OTHER_NAME, "returned the dialect 'other'; entry point and dialect need the same name"),
        ("", "failed with AttributeError: module 'odd_one' has no attribute 'load'"),
    ],
)
def test_a_package_that_does_not_bring_it_is_named(module: str, what: str, tmp_path: Path):
    installed(tmp_path, "odd-one", module, "sdy.dialects", norm="odd_one:load")
    done = run([*OPT, str(ROWS)], tmp_path)
    start = "entry point 'norm = odd_one:load' of package 'odd-one' in the group 'sdy.dialects'"
    assert f"{start} {what}" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_broken_plugin_does_not_affect_programs_without_its_dialect(tmp_path: Path):
    installed(tmp_path, "odd-one", FAILS, "sdy.dialects", norm="odd_one:load")
    done = run([*OPT, "-sdy-propagation-pipeline", "-"], tmp_path, "func.func @main() { return }")
    assert (done.returncode, done.stderr) == (0, "")
