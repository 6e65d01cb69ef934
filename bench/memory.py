"""Peak memory of propagating a large program, and memory growth over many compilations.

    python bench/memory.py [--layers N] [--compilations N]          648 layers and 1,000 compilations by default

The large program is the training step of examples/transformer.py, of 200,000 operations with 648 layers, parsed and
propagated by sdy and by the C++ passes in jaxlib. The compiled programs are small ones of the tests' corpus in turn,
with cleared caches, under `sdy.jit` and under `jax.jit`. The growth is measured from a tenth of the compilations, when
caches of the process are filled, to the end, without the free memory of C's allocator. Each figure is of a separate
process, in MB.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from process_memory import MOST, NOW, give_back, memory

_COMPILED = ("linear algebra: attention", "linear algebra: several tensors", "spectra: sums", "linear algebra: qr")


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of a large program, and growth over many compilations.")
    parser.add_argument("--layers", type=int, default=648)
    parser.add_argument("--compilations", type=int, default=1000)
    parser.add_argument(
        "--one",
        choices=_MEASURED,
        help="measure a program on standard input in this process, and print JSON",
    )
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_MEASURED[options.one](options.compilations)))
        return
    from measure import lowered  # imports jax, which must not count as memory of the subprocess

    print("| | sdy: MB | jaxlib: MB |")
    print("| --- | --: | --: |")
    text = lowered(options.layers)
    ours, theirs = (measured(name, text) for name in ("propagated by sdy", "propagated by jaxlib"))
    print(f"| read and propagated, {options.layers} layers | {ours:.0f} | {theirs:.0f} |", flush=True)
    grown = [measured(name, "", options.compilations) for name in ("compiled by sdy", "compiled by jax")]
    cells = [f"{before:.0f} to {after:.0f}, {after / before - 1:+.1%}" for before, after in grown]
    print(f"| {options.compilations} compilations | {' | '.join(cells)} |")


def measured(name: str, text: str, compilations: int = 0) -> Any:
    """Return the measurement `name` of a subprocess."""
    words = [sys.executable, __file__, "--one", name, "--compilations", str(compilations)]
    return json.loads(subprocess.run(words, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout)


def propagated_by_sdy(_: int) -> float:
    from sdy.passes.driver import run_passes
    from sdy.passes.pipelines import PropagationPipeline
    from sdy.text import parse

    run_passes(parse(sys.stdin.read()), [PropagationPipeline()])
    return memory(MOST)


def propagated_by_jaxlib(_: int) -> float:
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager

    with make_ir_context():
        module = ir.Module.parse(sys.stdin.read())
        PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
    return memory(MOST)


def compiled_by_sdy(count: int) -> tuple[float, float]:
    import sdy

    return compiled(sdy.jit, count)


def compiled_by_jax(count: int) -> tuple[float, float]:
    import jax

    return compiled(jax.jit, count)


def compiled(jit: Callable[..., Any], count: int) -> tuple[float, float]:
    """Return the memory of this process after a tenth of `count` compilations, and after all."""
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

    from corpus import PROGRAMS
    from placed import of_corpus
    from sdy.diagnostics import capture

    programs = [of_corpus(PROGRAMS[each]) for each in _COMPILED]
    before = 0.0
    for number, program in enumerate(islice(cycle(programs), count)):
        jax.clear_caches()
        with jax.set_mesh(program.mesh), capture():
            jax.block_until_ready(jit(program.function)(*program.arguments))
        if number == count // 10:
            before = _after_collection()
    return before, _after_collection()


def _after_collection() -> float:
    gc.collect()
    give_back()
    return memory(NOW)


_MEASURED: dict[str, Callable[[int], Any]] = {
    "propagated by sdy": propagated_by_sdy,
    "propagated by jaxlib": propagated_by_jaxlib,
    "compiled by sdy": compiled_by_sdy,
    "compiled by jax": compiled_by_jax,
}

if __name__ == "__main__":
    main()
