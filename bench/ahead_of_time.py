"""Training steps compiled ahead of time for H100s by XLA: bytes, memory and asynchronous collectives, as predicted.

    pip install jax-cuda13-plugin jax-cuda13-pjrt        of the version of jax, without dependencies; no GPU is needed
    python bench/ahead_of_time.py [PART OF A NAME ...]

The steps of `bench/communication.py` are compiled for two hosts of eight H100s, with all passes and without each pass
of passes/communication; models of `bench/auto_model_programs.py` for eight H100s, with batch and state over all.
A collective counts as asynchronous if XLA starts it before other operations and waits for it after them. The kernels
are those that XLA picks without measuring.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

import jax
from jax.experimental.topologies import get_topology_desc
from xdsl.dialects.builtin import ModuleOp

import sdy
from auto_model_programs import MODELS
from communication import STEPS, Step, programs
from placed import fully_sharded
from sdy.formatting import format_bytes
from sdy.passes.jax.hlo_collectives import collectives, total
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.spmd.costs.backend import Backend
from sdy.passes.spmd.costs.communication import bytes_received as predicted_bytes
from sdy.passes.spmd.costs.footprint import peak_bytes

_ASYNCHRONOUS = re.compile(r" (?:all|reduce|collective|ragged)-[\w-]+-start\(")
_LINE = {"devices": 8}


def devices(hosts: int) -> list[Any]:
    """Return eight H100s of each of some hosts, for which programs can be compiled but not run."""
    target = Path(__file__).with_name("h100.txtpb").read_text()
    return get_topology_desc(platform="cuda", topology=f"1x{hosts}x8", target_config=target).devices


def _models() -> Mapping[str, Callable[[], Step]]:
    """Return the models, with batch and state over eight devices."""

    def step(name: str) -> Step:
        function, arguments = MODELS[name](_LINE["devices"])
        return Step(function, arguments, 3, fully_sharded(*_LINE, mesh=_LINE), _LINE)

    return {name: lambda name=name: step(name) for name in MODELS if name != "decoding"}


def _row(name: str, without: str, local: ModuleOp, hosts: int) -> str:
    """Return a row of the table: a program of one device, compiled."""
    compiled = sdy.compile(local, devices(hosts))
    text, needed = compiled.compiled_text(), compiled.peak_bytes() or 0
    received, expected = bytes_received(text, 8 * hosts), predicted_bytes(local)
    count, started = total(collectives(text)).count, len(_ASYNCHRONOUS.findall(text))
    figures = [
        f"{started} of {count}",
        format_bytes(received),
        f"{max(expected, 1) / max(received, 1):.2f}",
        format_bytes(needed),
        f"{peak_bytes(local, Backend.ACCELERATOR) / max(needed, 1):.2f}",
    ]
    return f"| {name} | {without} | {' | '.join(figures)} |"


def _rows(parts: list[str]) -> Iterator[str]:
    for hosts, steps in ((2, STEPS), (1, _models())):
        for name, build in steps.items():
            if parts and not any(part in name for part in parts):
                continue
            module = build().module()
            sdy.propagate(module)
            for without, local in programs(module, "h100", all_only=hosts == 1):
                yield _row(name, without, local, hosts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compile training steps for H100s, without a GPU.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART OF A NAME", help="only steps whose name contains one of these"
    )
    options = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", 16)
    print("| step | without | asynchronous | received | predicted / received | memory | predicted / memory |")
    print("| --- | --- | --: | --: | --: | --: | --: |", flush=True)
    for row in _rows(options.parts):
        print(row, flush=True)


if __name__ == "__main__":
    main()
