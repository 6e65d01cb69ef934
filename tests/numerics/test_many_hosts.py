"""Two processes with four devices each compute the results of one process with eight."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import many_hosts
from virtual_devices import FAST_COMPILATION

HOSTS = 2
PATIENCE = 240.0
"""Timeout in seconds of processes that normally take a few."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_hosts(folder: Path) -> list[Path]:
    """Run the hosts and return the files that they write to `folder`. Fails with the output of a host that fails."""
    coordinator = f"127.0.0.1:{free_port()}"
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    environment["XLA_FLAGS"] = FAST_COMPILATION
    outputs = [folder / f"host{index}.npz" for index in range(HOSTS)]
    hosts: list[subprocess.Popen[bytes]] = []
    for index, output in enumerate(outputs):
        command = [sys.executable, many_hosts.__file__, coordinator, str(HOSTS), str(index), str(output)]
        with output.with_suffix(".log").open("wb") as log:
            hosts.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
    try:
        wait(hosts)
    finally:
        for host in hosts:
            host.kill()
            host.wait()
    said = "\n".join(f"host {index}: {output.with_suffix('.log').read_text()}" for index, output in enumerate(outputs))
    assert [host.returncode for host in hosts] == [0] * HOSTS, said
    return outputs


def wait(hosts: list[subprocess.Popen[bytes]]) -> None:
    """Wait until all hosts have ended or one has failed, because the others would wait for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        codes = [host.poll() for host in hosts]
        if any(codes) or None not in codes:
            return
        time.sleep(0.1)


def test_two_hosts_compute_what_one_does(tmp_path: Path):
    held = [np.load(output) for output in run_hosts(tmp_path)]
    expected = many_hosts.parts(many_hosts.run_programs())
    assert [len(parts.files) for parts in held] == [len(expected) // HOSTS] * HOSTS
    for parts in held:
        for name in parts.files:
            np.testing.assert_allclose(parts[name], expected[name], rtol=1e-6, atol=1e-7, err_msg=name)
