"""sdy-interpret: run a program on NumPy arrays, and say whether what it expects holds."""

import argparse
import sys
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.diagnostics import DiagnosticError, error, report
from sdy.interpreter.check_dialect import CHECK, INTERPRETER
from sdy.passes.common.call_graph import find_main_function
from sdy.passes.driver import Source, read
from sdy.passes.jax.inputs import NumpyArray, arrange_inputs, read_arrays
from sdy.progress import task
from sdy.text import context, parse
from sdy.tools.arguments import PROGRAM, tool_parser
from sdy.tools.command import REFUSED, guarded
from sdy.tools.custom_call_rules import take_rules
from sdy.tools.imports import import_modules
from sdy.tools.progress import progress
from sdy.tools.split_input import split

_DESCRIPTION = """\
Run the function @main of a StableHLO program, or its only function, in the reference interpreter.

interpreter.run_parallel runs programs on the devices of a grid, with collectives between them; check.expect_eq,
expect_almost_eq, expect_close and their forms with constants compare. The exit status is 0 where all of them hold, else
1, with the place of the first that does not and the first element that differs on standard error.

What @main takes comes from a file, as whole arrays; a partitioned program is then run on all devices of its mesh.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-interpret", _DESCRIPTION, no="a check of the program fails")
    parser.add_argument("file", metavar="FILE.mlir", nargs="?", default="-", help=PROGRAM)
    parser.add_argument(
        "--split-input-file",
        action="store_true",
        help="treat each part between '// -----' lines as a program of its own",
    )
    parser.add_argument("--inputs", metavar="FILE.npz", help="read the arguments of @main from this file")
    arguments = parser.parse_args(argv)
    return guarded(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
    """Run each program of the file; the exit status is 1 where one goes wrong. Raises DiagnosticError."""
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    parts = split(source) if arguments.split_input_file else [source]
    return max([_run_part(part, arguments.inputs) for part in parts], default=0)


def _run_part(source: Source, inputs: str | None) -> int:
    status = REFUSED
    try:
        with progress():
            module = read_program(source)
            status = 1
            results = run_program(module, inputs)
    except DiagnosticError as problem:
        for diagnostic in problem.diagnostics:
            report(diagnostic)
        return status
    for result in results:
        print(result)
    return 0


def read_program(source: Source) -> ModuleOp:
    """Parse a program that may use the dialects of checks and of the interpreter. Raises DiagnosticError."""
    ctx = context()
    ctx.load_dialect(CHECK)
    ctx.load_dialect(INTERPRETER)
    with task("parse"):
        return parse(source.text, source.name, ctx)


def run_program(module: ModuleOp, inputs: str | None = None) -> Sequence[object]:
    """Run @main on the arrays of the file `inputs`, if given. Raises DiagnosticError, also where a check fails."""
    # It needs scipy, which --help does not.
    from sdy.interpreter.machine import run_function

    if not any(isinstance(op, FuncOp) for op in module.ops):
        return ()
    if (function := find_main_function(module)) is None:
        raise error(module, "there is no function @main to run")
    if inputs is None and function.function_type.inputs.data:
        problem = f"@{function.sym_name.data} takes arguments, but there are none to give it (--inputs FILE.npz does)"
        raise error(function, problem)
    with task("run"):
        return run_function(module, function) if inputs is None else _run_on(module, inputs)


def _run_on(module: ModuleOp, inputs: str) -> Sequence[NumpyArray]:
    # Whoever asks for this waits for jax to be imported, with which programs' arguments are described.
    from sdy.passes.interpret import argument_ports, interpret

    return interpret(module, *arrange_inputs(read_arrays(inputs), argument_ports(module), inputs))


if __name__ == "__main__":
    sys.exit(main())
