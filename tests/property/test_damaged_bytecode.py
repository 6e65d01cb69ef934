"""Damaged bytecode is either read or refused."""

import json
import subprocess
import sys

import pytest

from bytecode_campaign import __file__ as campaign

FINE = {"read", "refused", "dies", "hangs"}
"""The parser of jaxlib may crash or hang, in its own process; we report that. See tests/unit/test_bytecode.py."""


def test_damaged_bytecode_is_read_or_refused(request: pytest.FixtureRequest):
    count: int = request.config.option.damaged_bytecode
    command = [sys.executable, campaign, f"--count={count}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 + count)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    assert counts.keys() <= FINE
    assert sum(counts.values()) == count
    assert counts["refused"] > count // 2
