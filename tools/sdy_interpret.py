"""sdy-interpret: run a program in the reference interpreter, and check its assertions."""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from sdy.diagnostics import DiagnosticError, error, report
from sdy.interpreter.check_dialect import CHECK, INTERPRETER
from sdy.passes.common.call_graph import find_main_function
from sdy.passes.driver import Source, read, split
from sdy.passes.jax.program.inputs import arrange_inputs, read_arrays
from sdy.progress import task
from sdy.text import context, parse
from sdy.tools.arguments import PROGRAM, tool_parser
from sdy.tools.entry import REFUSED, guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress

_DESCRIPTION = """\
Run the function @main of a StableHLO program, or its only function, in the reference interpreter.

interpreter.run_parallel runs functions on the devices of a grid, with collectives between them. check.expect_eq,
expect_almost_eq, expect_close and their forms with constants are assertions. If one fails, standard error has its
location and the first element that differs.

The arguments of @main are read from a file, as global arrays; a partitioned program runs on all devices of its mesh.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = tool_parser("sdy-interpret", _DESCRIPTION, no="an assertion of the program fails")
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
    """Run each program of the file; the exit status is 1 if one fails, and 2 if one cannot be run.

    Raises:
        DiagnosticError: The file cannot be read.
    """
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
            execute = prepare_run(module, inputs)
            status = 1
            with task("run"):
                results = execute()
    except DiagnosticError as problem:
        for diagnostic in problem.diagnostics:
            report(diagnostic)
        return status
    for result in results:
        print(result)
    return 0


def read_program(source: Source) -> ModuleOp:
    """Parse a program, with the dialects of assertions and of the interpreter.

    Raises:
        DiagnosticError: The program is invalid.
    """
    ctx = context()
    ctx.load_dialect(CHECK)
    ctx.load_dialect(INTERPRETER)
    with task("parse"):
        return parse(source.text, source.name, ctx)


def run_program(module: ModuleOp, inputs: str | None = None) -> Sequence[object]:
    """Run @main and return its results.

    Args:
        module: The program.
        inputs: The file with the arguments of @main, if it takes any.

    Raises:
        DiagnosticError: The arguments do not match, or an assertion fails.
    """
    run = prepare_run(module, inputs)
    with task("run"):
        return run()


def prepare_run(module: ModuleOp, inputs: str | None) -> Callable[[], Sequence[object]]:
    """Return a function that runs @main on the arguments in the file `inputs`, and returns its results.

    Raises:
        DiagnosticError: There is no @main, or the arguments do not match.
    """
    # Imported lazily: this imports SciPy, which --help does not need.
    from sdy.interpreter.machine import run_function

    if not any(isinstance(op, FuncOp) for op in module.ops):
        return tuple
    if (function := find_main_function(module)) is None:
        raise error(module, "no function @main to run")
    if inputs is not None:
        # Imported lazily: this imports JAX.
        from sdy.passes.interpret import argument_ports, interpret

        arguments = arrange_inputs(read_arrays(inputs), argument_ports(module), inputs)
        return partial(interpret, module, *arguments)
    if function.function_type.inputs.data:
        problem = f"@{function.sym_name.data} takes arguments: pass them with --inputs FILE.npz"
        raise error(function, problem)
    return partial(run_function, module, function)


if __name__ == "__main__":
    sys.exit(main())
