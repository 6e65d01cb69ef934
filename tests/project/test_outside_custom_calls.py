"""Sharding rules that another package registers for its custom-call targets by entry points, loaded on first use."""

from pathlib import Path

import pytest

from outside_packages import installed, run

OPT = ["-m", "sdy", "opt", "-sdy-propagation-pipeline", "-sdy-partition-pipeline", "-"]

RULES = """
SCALE = "... i -> ... i need_replication={i}"
RULES = {"back.matmul": "i k, k j -> i j reduction={k}", "back.end.norm": SCALE}
"""

ENTRIES = {
    "back_scale": "back_end:SCALE",
    "back.matmul": "back_end:RULES",
    "back.end.norm": "back_end:RULES",
    "back.other": "no_such_module:RULES",
}


def calling(target: str) -> str:
    return f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x6xf32> {{
  %0 = stablehlo.custom_call @{target}(%x) : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}}
"""


@pytest.mark.parametrize("target", ["back_scale", "back.end.norm"])
def test_each_device_calls_the_target_on_its_part(target: str, tmp_path: Path):
    installed(tmp_path, "back-end", RULES, "sdy.custom_calls", **ENTRIES)
    done = run(OPT, tmp_path, calling(target))
    assert done.stderr == ""
    assert f"@{target}(%arg0)" in done.stdout
    assert "(tensor<2x6xf32>) -> tensor<2x6xf32>" in done.stdout


def test_a_rule_that_does_not_fit_a_call_is_told_where_the_call_stands(tmp_path: Path):
    installed(tmp_path, "back-end", RULES, "sdy.custom_calls", **ENTRIES)
    done = run(OPT, tmp_path, calling("back.matmul"))
    assert "<stdin>:4:8: error: the annotation `i k, k j -> i j reduction={k}` doesn't fit" in done.stderr
    assert "the annotation has 2 operand(s), the operation 1" in done.stderr


def test_the_rule_of_a_package_is_not_replaced(tmp_path: Path):
    installed(tmp_path, "back-end", RULES, "sdy.custom_calls", **ENTRIES)
    rules = tmp_path / "kernels.rules"
    rules.write_text("back_scale: i j -> i j")
    done = run([*OPT, f"--custom-call-rules={rules}"], tmp_path, calling("back_scale"))
    assert "kernels.rules:1:1: error: custom calls of @back_scale have a sharding rule already" in done.stderr


@pytest.mark.parametrize(
    ("module", "what"),
    [
        ("RULE = 5", "refers to 5; expected an annotation, or a dictionary with one for 'back_scale'"),
        ("RULE = {'other': 'i -> i'}", "refers to {'other': 'i -> i'}; expected an annotation, or a dictionary"),
        (
            "RULE = 'i j -> i reduction={k}'",
            "refers to the annotation `i j -> i reduction={k}`: factor 'k' is in `reduction`",
        ),
        ("raise OSError('no such driver')", "failed with OSError: no such driver"),
        ("", "failed with AttributeError: module 'odd_one' has no attribute 'RULE'"),
    ],
)
def test_a_package_that_does_not_bring_it_is_named(module: str, what: str, tmp_path: Path):
    installed(tmp_path, "odd-one", module, "sdy.custom_calls", back_scale="odd_one:RULE")
    done = run(OPT, tmp_path, calling("back_scale"))
    start = "entry point 'back_scale = odd_one:RULE' of package 'odd-one' in the group 'sdy.custom_calls'"
    assert f"{start} {what}" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_broken_plugin_does_not_affect_programs_without_its_target(tmp_path: Path):
    installed(tmp_path, "odd-one", "raise OSError", "sdy.custom_calls", back_scale="odd_one:RULE")
    done = run(OPT, tmp_path, calling("Cholesky"))
    assert (done.returncode, done.stderr) == (0, "")
