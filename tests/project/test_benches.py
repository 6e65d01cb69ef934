"""Each bench finds its inputs; its measurements are not tested."""

from pathlib import Path

import pytest

import forked_commands

BENCH = Path(__file__).parents[2] / "bench"
PROGRAMS = [path.name for path in sorted(BENCH.glob("*.py")) if "ArgumentParser" in path.read_text()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bench_says_how_it_is_used(name: str):
    done = forked_commands.run([BENCH / name, "--help"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_benches_are_found():
    assert {"compile.py", "drop_in.py", "partition.py", "propagation.py"} <= set(PROGRAMS)
