"""Two processes with four devices each compute the results of one process with eight."""

from pathlib import Path

import numpy as np

import many_hosts
from host_processes import run_hosts

HOSTS = 2


def test_two_hosts_compute_what_one_does(tmp_path: Path):
    held = [np.load(output) for output in run_hosts(many_hosts.__file__, tmp_path, HOSTS)]
    expected = many_hosts.parts(many_hosts.run_programs())
    assert [len(parts.files) for parts in held] == [len(expected) // HOSTS] * HOSTS
    for parts in held:
        for name in parts.files:
            np.testing.assert_allclose(parts[name], expected[name], rtol=1e-6, atol=1e-7, err_msg=name)
