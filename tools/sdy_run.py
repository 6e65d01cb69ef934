"""sdy-run: partition a program, run it, and compare its results with those of the unpartitioned program."""

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import DiagnosticError, error
from sdy.dialect import ManualComputationOp
from sdy.ir.companions import clone, companion
from sdy.ir.walking import operations
from sdy.passes.driver import Timing, read, run_passes
from sdy.passes.importing.import_gspmd import ImportGspmdPass, needs_import_from_gspmd
from sdy.passes.jax.program.inputs import NumpyArray, arrange_inputs, random_inputs, read_arrays
from sdy.passes.layouts import PartitionedLayout, PropagatedLayout, cheapest, partitioner_for, propagated_layouts
from sdy.passes.spmd.remat.recomputed import Recomputed
from sdy.text import parse
from sdy.tools.arguments import PROGRAM, add_inputs_options, add_under_option, byte_size, positive, tool_parser
from sdy.tools.comparison import Comparison, Reference, compare
from sdy.tools.devices import check_enough, enough_devices
from sdy.tools.entry import guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress
from sdy.tools.run_account import RunAccount, count_operations, count_shardings, show
from sdy.tools.terminal import Terminal

if TYPE_CHECKING:
    import jax

    from sdy.passes.account.account import Account
    from sdy.passes.jax.api.compile import CompiledProgram
    from sdy.passes.jax.device_mesh import Device

_SMALL_PROGRAM = 5000
"""Number of operations up to which results are compared by default."""

_NOT_COMPARED = Comparison("not compared with the unpartitioned program (use --check)")

_DESCRIPTION = """\
Propagate the shardings of a StableHLO program, partition it, run it, and compare its results with those of the
unpartitioned program on one device.

The devices are JAX's. If these are fewer than the mesh has, virtual CPU devices are used instead. Inputs are random
unless they are read from a file.
"""

_EXAMPLES = """\
examples:
  sdy-run examples/transformer.mlir
  sdy-run program.mlir --inputs inputs.npz     arrays arg0, arg1, ... as numpy.savez writes them
  python examples/transformer.py | sdy-run -   the text of jax.jit(f).lower(...).as_text()
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("sdy-run", _DESCRIPTION, _EXAMPLES, no="the results differ by more than rounding explains")
    parser.add_argument("file", metavar="FILE.mlir", help=PROGRAM)
    parser.add_argument("--devices", type=positive, metavar="N", help="number of devices (default: that of the mesh)")
    add_inputs_options(parser)
    parser.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        help=f"compare with the unpartitioned program (default: if it has at most {_SMALL_PROGRAM} operations)",
    )
    parser.add_argument(
        "--compare-layouts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also propagate the program's HLO form, and keep the layout that moves fewer bytes (default)",
    )
    parser.add_argument(
        "--memory", type=byte_size, metavar="SIZE", help="memory per device: recompute values until the program fits"
    )
    add_under_option(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: The program or its inputs are invalid, or XLA rejects the program.
    """
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    with progress():
        account = _account(arguments)
    show(account, Terminal())
    return 0 if account.comparison.holds else 1


def _account(arguments: argparse.Namespace) -> RunAccount:
    """Propagate, partition, compile, run and compare the program."""
    timing = Timing()
    source = read(arguments.file)
    arrays = None if arguments.inputs is None else read_arrays(arguments.inputs)
    with timing.stage("parse"):
        module = parse(source.text, source.name)
        if needs_import_from_gspmd(module):
            run_passes(module, [ImportGspmdPass()])
    check_enough(module, arguments.devices)
    original = clone(module)
    size, initial_shardings = count_operations(module), count_shardings(module)
    with timing.stage("propagate"):
        layouts = propagated_layouts(module, compare=arguments.compare_layouts)
    with timing.stage("partition"):
        layout = cheapest(layouts)
    propagated_shardings = max(count_shardings(layout.module) - initial_shardings, 0)
    with timing.stage("start jax"):
        devices = enough_devices(layout.local, arguments.devices)
    with timing.stage("compile"):
        if arguments.memory is None:
            program = _compile(layout.local, devices)
        else:
            layout, program = _compile_within(arguments.memory, layouts, devices, source.name)
    if arrays is None:
        inputs = random_inputs(program.inputs, arguments.seed)
    else:
        inputs = arrange_inputs(arrays, program.inputs, str(arguments.inputs))
    with timing.stage("run"):
        results = _run(program, inputs)
    comparison = _NOT_COMPARED
    if arguments.check if arguments.check is not None else size <= _SMALL_PROGRAM:
        with timing.stage("compare"):
            comparison = _compare(original, program, inputs, results, must=arguments.check is True)
    return RunAccount(
        name=source.name,
        operations=size,
        initial_shardings=initial_shardings,
        propagated_shardings=propagated_shardings,
        costs=_costs(layout, program, original, arguments.under),
        seconds=timing.seconds,
        comparison=comparison,
    )


def _compile(module: ModuleOp, devices: "Sequence[Device]") -> "CompiledProgram":
    from sdy.passes.jax.api.compile import compile

    with _xla_errors_as_diagnostics():
        return compile(module, devices)


def _compile_within(
    memory: int, layouts: Sequence[PropagatedLayout], devices: "Sequence[Device]", name: str
) -> "tuple[PartitionedLayout, CompiledProgram]":
    """Partition and compile the program so that a device needs at most `memory` bytes, or with a warning."""
    from sdy.passes.jax.memory_limit import compile_within

    layout_of: dict[CompiledProgram, PartitionedLayout] = {}

    def compile_for(limit: int) -> "tuple[CompiledProgram, int]":
        layout = cheapest(layouts, partitioner_for(str(limit), warns=False))
        predicted = companion(layout.local, Recomputed).memory
        program = _compile(layout.local, devices)
        layout_of[program] = layout
        return program, predicted

    program = compile_within(memory, compile_for, name)
    assert program is not None
    return layout_of[program], program


def _run(program: "CompiledProgram", inputs: Sequence[Any]) -> "tuple[jax.Array, ...]":
    import jax

    with _xla_errors_as_diagnostics():
        return jax.block_until_ready(program(*inputs))


def _costs(layout: PartitionedLayout, program: "CompiledProgram", original: ModuleOp, under: str | None) -> "Account":
    from sdy.passes.account.account import Account, Compiled, costs_under
    from sdy.passes.jax.device_hardware import backend_of

    with _xla_errors_as_diagnostics():
        other = costs_under(under, original) if under else None
    return Account.of(layout, lambda: Compiled.of_program(program), other, backend_of(program.devices))


def _compare(
    original: ModuleOp, program: "CompiledProgram", inputs: Sequence[Any], results: "Sequence[jax.Array]", must: bool
) -> Comparison:
    """Compare the results with those of `original` on one device.

    A program with manual computations is compared with the result of XLA's partitioner on all devices.

    Args:
        original: The unpartitioned program.
        program: The compiled partitioned program.
        inputs: The inputs of both.
        results: The results of `program`.
        must: Raise if the comparison is impossible; otherwise, return the reason.

    Raises:
        DiagnosticError: XLA rejects the reference program, and `must` is true.
    """
    from sdy.passes.jax.api.compile import compile_by_xla, compile_unpartitioned

    is_manual = any(isinstance(op, ManualComputationOp) for op in operations(original))
    reference = "the program as XLA partitions it" if is_manual else "the unpartitioned program"
    try:
        with _xla_errors_as_diagnostics():
            other = (
                compile_by_xla(original, program.devices)
                if is_manual
                else compile_unpartitioned(original, program.devices[0])
            )
        return compare(
            original,
            inputs,
            _arrays(results),
            Reference(reference, lambda other_inputs: _arrays(_run(other, other_inputs))),
        )
    except DiagnosticError as problem:
        if must:
            raise
        return Comparison(f"not compared with {reference}: {problem.message}")


def _arrays(results: "Sequence[jax.Array]") -> list[NumpyArray]:
    return [np.asarray(_reduced(result)) for result in results]


def _reduced(result: "jax.Array") -> "jax.Array":
    """All-reduce an array with partial sums."""
    import jax

    sharding = result.sharding
    if not isinstance(sharding, jax.sharding.NamedSharding) or not sharding.spec.unreduced:
        return result
    replicated = jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
    return jax.jit(lambda partial: jax.sharding.reshard(partial, replicated))(result)


@contextmanager
def _xla_errors_as_diagnostics() -> Generator[None]:
    """Convert errors of XLA, such as insufficient memory, to DiagnosticError."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as problem:
        raise error(None, f"XLA rejects the program: {problem}") from problem
