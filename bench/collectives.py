"""Collective bytes of a program, partitioned by sdy and by XLA's own partitioner.

    python bench/collectives.py [FILE.mlir ...]          examples/transformer.mlir by default

Both start from the same text with Shardy's shardings, on as many virtual CPU devices as its mesh has. The table counts
the collectives in XLA's optimized HLO, after its combiners, with the bytes of their results on one device. The exit
status is 1 if a program of sdy has more bytes than XLA's.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
from jax.extend.backend import get_backend, get_compile_options
from rich.console import Console
from rich.table import Table

from sdy.dialect.meshes import device_count
from sdy.passes.driver import propagate
from sdy.passes.jax.api.compile import compile
from sdy.passes.jax.hlo_collectives import Traffic, collectives, total
from sdy.text import parse

_EXAMPLE = Path(__file__).parent.parent / "examples" / "transformer.mlir"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare collective bytes with those of XLA's own partitioner.")
    parser.add_argument("files", nargs="*", type=Path, default=[_EXAMPLE], metavar="FILE.mlir")
    files: list[Path] = parser.parse_args().files
    modules = {file: parse(file.read_text(), str(file)) for file in files}
    jax.config.update("jax_num_cpu_devices", max(map(device_count, modules.values())))
    more = False
    for file, module in modules.items():
        count = device_count(module)
        propagate(module)
        ours = collectives(compile(module, jax.devices("cpu")).compiled_text())
        theirs = collectives(compiled_by_xla(file.read_text(), count))
        show(file, ours, theirs)
        more |= total(ours).bytes > total(theirs).bytes
    return int(more)


def compiled_by_xla(text: str, count: int) -> str:
    """Return the optimized HLO of the MLIR module `text`, partitioned by XLA for `count` CPU devices."""
    options = get_compile_options(1, count, device_assignment=np.arange(count).reshape(1, count))
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    executable = get_backend("cpu").compile_and_load(text, jax.devices("cpu")[:count], options)
    return executable.hlo_modules()[0].to_string()


def show(file: Path, ours: Mapping[str, Traffic], theirs: Mapping[str, Traffic]) -> None:
    table = Table(title=str(file))
    for heading in ("collective", "sdy count", "bytes", "XLA count", "bytes", "bytes, sdy / XLA"):
        table.add_column(heading, justify="left" if heading == "collective" else "right")
    kinds = {kind: (ours.get(kind, Traffic()), theirs.get(kind, Traffic())) for kind in sorted({*ours, *theirs})}
    for name, (mine, other) in [*kinds.items(), ("all", (total(ours), total(theirs)))]:
        ratio = f"{mine.bytes / other.bytes:.3f}" if other.bytes else "-"
        table.add_row(name, f"{mine.count}", f"{mine.bytes:,}", f"{other.count}", f"{other.bytes:,}", ratio)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
