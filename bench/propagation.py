"""Speed of propagation, compared with the C++ Shardy in jaxlib.

    python bench/propagation.py [LAYERS ...]          2 12 48 192 by default

The program is the training step of examples/transformer.py with that many layers. The rows of the Markdown table are:
the pass `sdy-user-priority-propagate` after the import pipeline; `sdy-propagation-pipeline`, in process; a process that
reads and writes files, `sdy-opt` or a Python program that uses jaxlib; and solving the snapshot of the module again
with another sharding of an argument, relative to the pass. The two take turns; each time is the minimum of several.
Rules and steps are memoized in a process, so that they are computed in the first turn only. The exit status is 1 if a
module differs from the C++ one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from measure import least_seconds, lowered, nothing
from sdy.passes.driver import run_passes
from sdy.passes.pipelines import PropagationPipeline
from sdy.passes.propagation.reading.reader import read
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass
from sdy.sharding import TensorSharding
from sdy.text import format, parse

OURS, CPP = "sdy", "C++"

_PREPARATION = (
    "sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
    "sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-pre-order-funcs"
)
_PIPELINE = "sdy-propagation-pipeline"
_TURNS_IN_PROCESS = 40
"""More turns than for processes, since times of milliseconds vary by half."""
_PROGRAM = f"""
import sys
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
with make_ir_context():
    module = ir.Module.parse(open(sys.argv[1]).read())
    PassManager.parse("builtin.module({_PIPELINE})").run(module.operation)
    open(sys.argv[2], "w").write(str(module))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare propagation with the C++ passes in jaxlib.")
    parser.add_argument("layers", nargs="*", type=int, default=[2, 12, 48, 192])
    chosen = parser.parse_args().layers
    print_row("layers", "operations", "", "sdy: s", "C++: s", "sdy: µs/op", "sdy / C++")
    print_row("--:", "--:", "---", "--:", "--:", "--:", "--:")
    same = [compare(layers) for layers in chosen]
    return int(not all(same))


def compare(layers: int) -> bool:
    """Print the rows of a size. Return true if our modules equal those of the C++ passes."""
    with make_ir_context():
        text = lowered(layers)
        imported = cpp_module(text)
        run_cpp(imported, _PREPARATION)
        imported_text = str(imported)
        steps: dict[str, tuple[str, ModulePass, str]] = {
            "user-priority propagation": (imported_text, UserPriorityPropagatePass(), "sdy-user-priority-propagate"),
            "propagation pipeline": (text, PropagationPipeline(), _PIPELINE),
        }
        count = sum(1 for _ in parse(text).walk())
        same = True
        for name, (given, our_pass, cpp_pass) in steps.items():
            ours, theirs = parse(given), cpp_module(given)
            run_passes(ours, [our_pass])
            run_cpp(theirs, cpp_pass)
            same &= format(ours).strip() == str(theirs).strip()
            del ours, theirs
            seconds = least_seconds(
                {
                    OURS: (lambda given=given: parse(given), lambda module, step=our_pass: run_ours(module, step)),
                    CPP: (
                        lambda given=given: cpp_module(given),
                        lambda module, step=cpp_pass: run_cpp(module, step),
                    ),
                },
                turns=_TURNS_IN_PROCESS,
            )
            print_figures(layers, count, name, seconds)
        print_figures(layers, count, "process, from file to file", whole_process(text))
        print_solved_again(layers, count, imported_text)
    return same


def cpp_module(text: str) -> ir.Module:
    return ir.Module.parse(text)


def run_cpp(module: ir.Module, passes: str) -> None:
    PassManager.parse(f"builtin.module({passes})").run(module.operation)


def run_ours(module: ModuleOp, step: ModulePass) -> None:
    run_passes(module, [step])


def whole_process(text: str) -> dict[str, float]:
    """Return the minimal seconds of a process that reads the module from a file and writes the result.

    Both packages are compiled to bytecode, as pip installs them.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "given.mlir"), Path(folder, "made.mlir")
        source.write_text(text)
        sdy_opt = [str(Path(sys.executable).with_name("sdy-opt")), f"-{_PIPELINE}", str(source), "-o", str(target)]
        cpp = [sys.executable, "-c", _PROGRAM, str(source), str(target)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return least_seconds(
            {
                name: (nothing, lambda _, words=words: subprocess.run(words, check=True, env=environment))
                for name, words in {OURS: sdy_opt, CPP: cpp}.items()
            }
        )


def print_solved_again(layers: int, count: int, text: str) -> None:
    """Print the row for solving a snapshot again with another sharding of one argument."""
    step = UserPriorityPropagatePass()
    snapshot, _ = read(parse(text))
    assert snapshot.main is not None
    argument = next(node for node in snapshot.functions[snapshot.main].arguments if node in snapshot.initial)
    sharding = snapshot.initial[argument]
    given = {argument: TensorSharding.replicated_open(sharding.mesh, sharding.rank)}
    seconds = least_seconds(
        {
            "once": (lambda: parse(text), lambda module: run_ours(module, step)),
            "again": (nothing, lambda _: step.solve(snapshot, given)),
        },
        turns=_TURNS_IN_PROCESS,
    )
    again, once = seconds["again"], seconds["once"]
    ratio = f"{again / once:.2f} of once"
    print_row(f"{layers}", f"{count:,}", "solved again", f"{again:.3f}", "", f"{again / count * 1e6:.1f}", ratio)


def print_figures(layers: int, count: int, name: str, seconds: dict[str, float]) -> None:
    ours, theirs = seconds[OURS], seconds[CPP]
    print_row(
        f"{layers}",
        f"{count:,}",
        name,
        f"{ours:.3f}",
        f"{theirs:.3f}",
        f"{ours / count * 1e6:.1f}",
        f"{ours / theirs:.2f}",
    )


def print_row(*cells: str) -> None:
    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
