"""sdy-auto: choose how the arguments of a program are split over devices, and say what that costs."""

import argparse
import sys
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from sdy.byte_sizes import shown_bytes
from sdy.ir.companions import clone
from sdy.mesh import Mesh
from sdy.passes.auto.auto import auto
from sdy.passes.auto.mesh_shapes import mesh_shapes
from sdy.passes.auto.plan import Plan, shown_mesh
from sdy.passes.auto.search import Candidate
from sdy.passes.common.format_seconds import format_seconds
from sdy.passes.driver import STANDARD_STREAM, read, write
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.progress import current_reporter, report_to, task
from sdy.text import format, parse
from sdy.tools.arguments import PROGRAM, add_hardware_option, byte_size, positive, tool_parser
from sdy.tools.command import guarded
from sdy.tools.custom_call_rules import take_rules
from sdy.tools.imports import import_modules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Choose how the arguments of a StableHLO program are split over a mesh of devices, so that a step takes least time and
fits into their memory. Shardings that the program has stay. Shown are the layout, what it is predicted to cost, what
would have been chosen otherwise, and what the layouts cost that experts would begin with.
"""

_EXAMPLES = """\
examples:
  sdy-auto step.mlir --mesh data=4,model=2 --hardware h100-8
  sdy-auto step.mlir --devices 64 --hardware tpu-v5p --memory 90G     chooses the shape of the mesh, too
  sdy-auto --measure -o mine.toml
  sdy-auto step.mlir --mesh data=8 --hardware mine.toml -o sharded.mlir
"""


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
    mesh.add_argument("--mesh", type=_mesh, metavar="AXES", help="as data=4,model=2 (default: the program's own mesh)")
    mesh.add_argument("--devices", type=positive, metavar="N", help="how many devices; the shape of the mesh is chosen")
    add_hardware_option(parser, "the devices", default="h100-8")
    parser.add_argument(
        "--measure", action="store_true", help="instead of a program, measure jax's devices, and print a hardware file"
    )
    parser.add_argument("--memory", type=byte_size, metavar="SIZE", help="of a device (default: what the hardware has)")
    parser.add_argument(
        "--time-limit", type=float, default=60.0, metavar="SECONDS", help="of the search (default: 60); Ctrl-C ends it"
    )
    parser.add_argument(
        "--arguments-only", action="store_true", help="leave all that is computed in between to propagation"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the program with its shardings; - is standard output"
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
    """Write a hardware file of jax's devices."""
    # Whoever plans waits for no device.
    from sdy.passes.jax.measured_hardware import measured_hardware

    with progress(), task("measure the devices"):
        text = measured_hardware()
    write(output or STANDARD_STREAM, text)
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Do what the command line asks for. Raises DiagnosticError where the program or the hardware is wrong."""
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    hardware = hardware_of(arguments.hardware)
    meshes = mesh_shapes(arguments.devices) if arguments.devices else [arguments.mesh]
    with progress():
        with task("parse"):
            module = parse(source.text, source.name)
        tried = [_plan(clone(module), mesh, hardware, arguments, len(meshes)) for mesh in meshes]
    plan, planned = min(tried, key=lambda each: (not each[0].fits, each[0].cost.seconds))
    module_text = format(planned)
    terminal = Terminal(stderr=arguments.output == "-")
    terminal.print(str(plan))
    if len(tried) > 1:
        terminal.print("\n  mesh " + "".join(f"\n  {shown_mesh(each.mesh):24}{_outcome(each)}" for each, _ in tried))
    if arguments.output:
        write(arguments.output, module_text)
    return 0 if plan.fits else 1


def _plan(
    module: ModuleOp, mesh: Mesh | None, hardware: Hardware, arguments: argparse.Namespace, share: int
) -> tuple[Plan, ModuleOp]:
    with task(f"search on {shown_mesh(mesh)}" if mesh else "search"):
        tell = current_reporter()

        def tell_best(best: Candidate) -> None:
            if tell:
                tell(f"{best.name}: {format_seconds(best.cost.seconds)}, {shown_bytes(best.cost.memory)}")

        # The passes that each layout goes through say nothing of how far the search is.
        with report_to(None):
            plan = auto(
                module,
                mesh=mesh,
                hardware=hardware,
                memory=arguments.memory,
                time_limit=arguments.time_limit / share,
                intermediates=not arguments.arguments_only,
                progress=tell_best,
            )
    return plan, module


def _outcome(plan: Plan) -> str:
    fits = "" if plan.fits else ", more than there is"
    return f"{format_seconds(plan.cost.seconds)}, {shown_bytes(plan.cost.memory)}{fits}"


if __name__ == "__main__":
    sys.exit(main())
