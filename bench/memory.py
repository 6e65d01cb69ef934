"""Memory: the most that a large program takes to be read and propagated, and whether to compile again takes more.

    python bench/memory.py [--layers N] [--compilations N]          648 layers and 1,000 compilations by default

The large program is the training step of examples/transformer.py, of 200,000 operations with 648 layers; beside ours
stands the process that does the same with the C++ passes in jaxlib. Compiled are, in turn, small programs of the tests'
corpus, each time as if for the first time, under `sdy.jit` and under `jax.jit`. The growth is that from one in ten
compilations, when what is kept for a process is there, to the end. Each figure is of a process of its own, in MB.
"""

import argparse
import gc
import resource
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

BENCH = Path(__file__).parent
_COMPILED = ("linear algebra: attention", "linear algebra: several tensors", "spectra: sums", "linear algebra: qr")

_OURS = """
import sys
from sdy.passes.driver import run_passes
from sdy.passes.pipelines import PropagationPipeline
from sdy.text import parse
module = parse(open(sys.argv[1]).read())
run_passes(module, [PropagationPipeline()])
"""
_CPP = """
import sys
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
with make_ir_context():
    module = ir.Module.parse(open(sys.argv[1]).read())
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
"""
_PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of a large program, and growth over many compilations.")
    parser.add_argument("--layers", type=int, default=648)
    parser.add_argument("--compilations", type=int, default=1000)
    parser.add_argument("--compile-with", choices=("sdy", "jax"), help="only compile, in this process")
    options = parser.parse_args()
    if options.compile_with:
        before, after = compiled(options.compile_with, options.compilations)
        print(f"{before:.1f} {after:.1f}")
        return
    print("| | sdy: MB | jaxlib: MB |")
    print("| --- | --: | --: |")
    with TemporaryDirectory() as folder:
        path = Path(folder, "program.mlir")
        path.write_text(run(_LOWER, str(options.layers)))
        ours, theirs = (float(run(program + _PEAK, str(path))) for program in (_OURS, _CPP))
    print(f"| read and propagated, {options.layers} layers | {ours:.0f} | {theirs:.0f} |", flush=True)
    command = [__file__, "--compilations", str(options.compilations), "--compile-with"]
    grown = [run(*command, name).split() for name in ("sdy", "jax")]
    cells = [
        f"{float(before):.0f} to {float(after):.0f}, {float(after) / float(before) - 1:+.1%}" for before, after in grown
    ]
    print(f"| {options.compilations} compilations | {' | '.join(cells)} |")


_LOWER = f"""
import sys
sys.path.insert(0, {str(BENCH)!r})
from measure import lowered
print(lowered(int(sys.argv[1])))
"""


def run(program: str, *words: str) -> str:
    """What a Python program prints, which is a file or the text of one."""
    given = [program] if program == __file__ else ["-c", program]
    return subprocess.run([sys.executable, *given, *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def compiled(name: str, count: int) -> tuple[float, float]:
    """The memory of this process after one in ten of so many compilations, and after all."""
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    sys.path += [str(BENCH.parent / "tests/support")]

    from placed import of_corpus

    import sdy
    from corpus import PROGRAMS
    from sdy.diagnostics import capture

    jit = {"sdy": sdy.jit, "jax": jax.jit}[name]
    programs = [of_corpus(PROGRAMS[each]) for each in _COMPILED]
    before = 0.0
    for number, program in enumerate(islice(cycle(programs), count)):
        jax.clear_caches()
        with jax.set_mesh(program.mesh), capture():
            jax.block_until_ready(jit(program.function)(*program.arguments))
        if number == count // 10:
            before = memory()
    return before, memory()


def memory() -> float:
    """That of this process now, in MB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    main()
