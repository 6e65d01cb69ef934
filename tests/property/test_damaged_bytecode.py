"""Whatever is done to the bytes of a program, they are read or refused."""

import json
import subprocess
import sys

import pytest

from bytecode_campaign import __file__ as campaign

FINE = {"read", "refused", "dies", "hangs"}
"""jaxlib may die or hang: it is in a process of its own, and that is told. See tests/unit/test_bytecode.py."""


def test_damaged_bytecode_is_read_or_refused(request: pytest.FixtureRequest):
    count: int = request.config.option.damaged_bytecode
    command = [sys.executable, campaign, f"--count={count}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + count)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    assert counts.keys() <= FINE
    assert sum(counts.values()) == count
    assert counts["refused"] > count // 2
