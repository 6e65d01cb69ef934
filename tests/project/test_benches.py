"""Each bench finds its inputs; its measurements are not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
PROGRAMS = [path.name for path in sorted(BENCH.glob("*.py")) if "ArgumentParser" in path.read_text()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bench_says_how_it_is_used(name: str):
    done = subprocess.run(
        [sys.executable, BENCH / name, "--help"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_benches_are_found():
    assert {"compile.py", "drop_in.py", "partition.py", "propagation.py"} <= set(PROGRAMS)
