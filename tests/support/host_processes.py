"""Several processes, each with some of eight CPU devices, that run one program together."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import jax

from virtual_devices import FAST_COMPILATION

DEVICES = 8
PATIENCE = 240.0
"""Timeout in seconds of processes that normally take a few."""


def join(coordinator: str, count: str, index: str, heartbeat: int = 100) -> None:
    """Join `count` processes as number `index`, in one of the processes.

    jax ends the other processes if one does not answer for `heartbeat` seconds.
    """
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", DEVICES // int(count))
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_cross_host_transfer_socket_address", f"127.0.0.1:{free_port()}")
    jax.distributed.initialize(
        coordinator, int(count), int(index), initialization_timeout=120, heartbeat_timeout_seconds=heartbeat
    )


def free_port() -> int:
    """Return a port that no process listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_hosts(script: str, folder: Path, count: int, *arguments: str) -> list[Path]:
    """Run `script COORDINATOR COUNT INDEX OUTPUT.npz ARGUMENTS` in each process and return the outputs, in `folder`.

    Fails with the output of a process that fails.
    """
    outputs = [folder / f"host{index}.npz" for index in range(count)]
    with started_hosts(script, outputs, *arguments) as hosts:
        _wait(hosts)
    said = "\n".join(f"host {index}: {output.with_suffix('.log').read_text()}" for index, output in enumerate(outputs))
    assert [host.returncode for host in hosts] == [0] * count, said
    return outputs


@contextmanager
def started_hosts(script: str, outputs: Sequence[Path], *arguments: str) -> Generator[list[subprocess.Popen[bytes]]]:
    """Start `script COORDINATOR COUNT INDEX OUTPUT.npz ARGUMENTS` for each output; processes are killed at the end.

    The log of a process is beside its output.
    """
    coordinator = f"127.0.0.1:{free_port()}"
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    environment["XLA_FLAGS"] = FAST_COMPILATION
    hosts: list[subprocess.Popen[bytes]] = []
    for index, output in enumerate(outputs):
        command = [sys.executable, script, coordinator, str(len(outputs)), str(index), str(output), *arguments]
        with output.with_suffix(".log").open("wb") as log:
            hosts.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
    try:
        yield hosts
    finally:
        for host in hosts:
            host.kill()
            host.wait()


def _wait(hosts: list[subprocess.Popen[bytes]]) -> None:
    """Wait until all hosts have ended or one has failed, because the others would wait for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        codes = [host.poll() for host in hosts]
        if any(codes) or None not in codes:
            return
        time.sleep(0.1)
