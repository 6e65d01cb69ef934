"""sdy-auto: choose the argument shardings of a program, and print their predicted cost."""

import argparse
import sys
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import device_count
from sdy.formatting import format_bytes, format_seconds
from sdy.ir.companions import clone
from sdy.mesh import Mesh
from sdy.passes.auto.auto import auto
from sdy.passes.auto.plan import Plan, shown_mesh
from sdy.passes.auto.search import Candidate
from sdy.passes.driver import STANDARD_STREAM, check_writable, read, write
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.progress import current_reporter, report_to, task
from sdy.text import format, parse
from sdy.tools.arguments import PROGRAM, add_hardware_option, byte_size, positive, tool_parser
from sdy.tools.devices import enough_devices
from sdy.tools.entry import guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Choose shardings for the arguments of a StableHLO program on a mesh, such that a step takes the least predicted time and
fits into device memory. Existing shardings are kept. The output lists the chosen shardings with their runners-up, the
predicted time and memory of a step, and the costs of layouts that an expert would write.
"""

_EXAMPLES = """\
examples:
  sdy-auto step.mlir --mesh data=4,model=2 --hardware h100-8
  sdy-auto step.mlir --devices 64 --hardware tpu-v5p --memory 90G     also chooses the shape of the mesh
  sdy-auto --measure -o mine.toml
  sdy-auto step.mlir --mesh data=8 --hardware mine.toml -o sharded.mlir
  sdy-auto step.mlir --mesh data=8 --emit-python layout.py
"""

_MOST_MINOR = 16
"""Maximum size of the minor axis; more devices rarely share a fast interconnect."""

_MOST_MEASURED = 64
"""The largest mesh for which `--emit-python` compiles the program on virtual devices, to tell what it receives."""


def mesh_shapes(devices: int) -> Sequence[Mesh]:
    """Return the candidate meshes: one axis, `data`, or two, `data` and `model`, with `model` of size at most 16."""
    minor = [size for size in range(2, min(devices // 2, _MOST_MINOR) + 1) if devices % size == 0]
    return [
        Mesh.of({"data": devices}),
        *(Mesh.of({"data": devices // size, "model": size}) for size in minor),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if (arguments.file is None) != arguments.measure:
        parser.error("give either a program or --measure")
    return guarded(lambda: measure(arguments.output) if arguments.measure else run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("sdy-auto", _DESCRIPTION, _EXAMPLES, no="no layout fits in memory")
    parser.add_argument("file", nargs="?", metavar="FILE.mlir", help=PROGRAM)
    mesh = parser.add_mutually_exclusive_group()
    mesh.add_argument("--mesh", type=_mesh, metavar="AXES", help="such as data=4,model=2 (default: the program's mesh)")
    mesh.add_argument("--devices", type=positive, metavar="N", help="number of devices; chooses the shape of the mesh")
    add_hardware_option(parser, "the devices", default="h100-8")
    parser.add_argument(
        "--measure", action="store_true", help="measure JAX's devices and write a hardware file, without a program"
    )
    parser.add_argument("--memory", type=byte_size, metavar="SIZE", help="memory per device (default: the hardware's)")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="search time (default: until it converges); Ctrl-C ends it"
    )
    parser.add_argument("--arguments-only", action="store_true", help="do not choose shardings of intermediate values")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the program with its shardings; - is standard output"
    )
    parser.add_argument(
        "--emit-python",
        metavar="FILE",
        help="write the shardings as a Python file that imports jax alone; - is standard output",
    )
    parser.add_argument(
        "--front", metavar="FILE.svg", help="write a picture of the layouts that no other one beats in time and memory"
    )
    return parser


def _mesh(text: str) -> Mesh:
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if not name or not size.isdecimal() or not int(size) or name in axes:
            raise argparse.ArgumentTypeError(f"'{text}' is not a mesh: write its axes, major first, as data=4,model=2")
        axes[name] = int(size)
    return Mesh.of(axes)


def measure(output: str | None) -> int:
    """Measure JAX's devices and write a hardware file."""
    # Imported lazily: planning does not import JAX.
    from sdy.passes.jax.measured_hardware import measured_hardware

    check_writable(output)
    with progress(), task("measure the devices"):
        text = measured_hardware()
    write(output or STANDARD_STREAM, text)
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: The program or the hardware is invalid.
    """
    check_writable(arguments.output, arguments.emit_python, arguments.front)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    hardware = hardware_of(arguments.hardware)
    meshes = _candidate_meshes(arguments.devices, hardware) if arguments.devices else [arguments.mesh]
    with progress():
        with task("parse"):
            module = parse(source.text, source.name)
        plans: list[tuple[Plan, ModuleOp]] = []
        for mesh in meshes:
            plans.append(_plan(clone(module), mesh, hardware, arguments, len(meshes)))
            if plans[-1][0].limit_reached == "interrupt":
                break
    plan, planned_module = min(plans, key=lambda each: (not each[0].fits, each[0].cost.seconds))
    module_text = format(planned_module)
    terminal = Terminal(stderr=STANDARD_STREAM in (arguments.output, arguments.emit_python))
    terminal.print(str(plan))
    if len(plans) > 1:
        terminal.print("\n  mesh " + "".join(f"\n  {shown_mesh(each.mesh):24}{_outcome(each)}" for each, _ in plans))
    if arguments.output:
        write(arguments.output, module_text)
    if arguments.emit_python:
        with progress(), task("compile the program as jax.jit does"):
            if device_count(planned_module) <= _MOST_MEASURED:
                enough_devices(planned_module)
            python = plan.specs().to_python()
        write(arguments.emit_python, python)
    if arguments.front:
        write(arguments.front, plan.pareto_svg())
    return 0 if plan.fits else 1


def _candidate_meshes(devices: int, hardware: Hardware) -> Sequence[Mesh]:
    """Return the candidate meshes whose axes include those that have a link of their own."""
    meshes = mesh_shapes(devices)
    return [mesh for mesh in meshes if all(axis in mesh for axis in hardware.axes)] or meshes


def _plan(
    module: ModuleOp, mesh: Mesh | None, hardware: Hardware, arguments: argparse.Namespace, share: int
) -> tuple[Plan, ModuleOp]:
    with task(f"search on {shown_mesh(mesh)}" if mesh else "search"):
        report = current_reporter()

        def report_best(best: Candidate) -> None:
            if report:
                report(f"{best.name}: {format_seconds(best.cost.seconds)}, {format_bytes(best.cost.memory)}")

        limit = arguments.time_limit
        # Do not report the passes that run on each layout.
        with report_to(None):
            plan = auto(
                module,
                mesh=mesh,
                hardware=hardware,
                memory=arguments.memory,
                time_limit=None if limit is None else limit / share,
                intermediates=not arguments.arguments_only,
                progress=report_best,
            )
    return plan, module


def _outcome(plan: Plan) -> str:
    fits = "" if plan.fits else ", does not fit"
    return f"{format_seconds(plan.cost.seconds)}, {format_bytes(plan.cost.memory)}{fits}"


if __name__ == "__main__":
    sys.exit(main())
