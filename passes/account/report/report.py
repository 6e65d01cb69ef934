"""`sdy.report`: an HTML report of a program's communication and memory, with the reasons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy import gc_control
from sdy.diagnostics import location_of
from sdy.dialect.meshes import main_mesh, named_meshes
from sdy.formatting import escape_line
from sdy.ir.walking import cached_walks
from sdy.passes.account.causes import TracedProgram, traced_program
from sdy.passes.account.cost_tables import ALONE, BESIDE
from sdy.passes.account.keywords import check_keywords
from sdy.passes.account.lint.callers import library_line
from sdy.passes.account.lint.findings import Findings
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.thresholds import Thresholds
from sdy.passes.account.lint.written import WrittenProgram, default_hardware, linted_layouts
from sdy.passes.account.partitioned_program import Program, memory_limit_of, program_of
from sdy.passes.account.report.arrays import arrays_as_json, largest_intermediates
from sdy.passes.account.report.badges import BADGES, Arguments
from sdy.passes.account.report.exchanges import group_equal, groups_as_json, under_as_json
from sdy.passes.account.report.findings import MOST_OPERATIONS, findings_as_json, findings_of, is_large
from sdy.passes.account.report.headline import headline
from sdy.passes.account.report.html_report import Report
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.memory import memory_as_json
from sdy.passes.account.report.numbering import Json, Numbers
from sdy.passes.account.report.pipeline import pipeline_report
from sdy.passes.account.report.reasons import Reasons
from sdy.passes.account.report.sources import source_lines
from sdy.passes.account.report.timeline import perfetto_trace, timeline_as_json
from sdy.passes.account.unsharded import unsharded_hint
from sdy.passes.communication.end_row_loops import num_row_loops
from sdy.passes.driver import mpmd_function
from sdy.passes.layouts import is_propagated
from sdy.passes.propagation.provenance.explain import Explainer
from sdy.passes.propagation.provenance.history import history_of
from sdy.passes.propagation.provenance.present_names import PresentNames
from sdy.passes.python.program import to_python
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import footprint
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.network import Network
from sdy.passes.spmd.costs.step_time import StepTimes
from sdy.passes.spmd.remat.recomputed import describe_recomputed

if TYPE_CHECKING:
    from sdy.passes.account.account import Compiled
    from sdy.passes.jax.stages import LoweredProgram


@gc_control.paused()
def report(
    program: Program,
    *args: Any,
    hardware: Hardware | str | None = None,
    compiled: bool = False,
    findings: bool = True,
    under: str | None = None,
    **kwargs: Any,
) -> Report:
    """Create an HTML report of a program: collectives with their reasons, memory, arrays and operations.

        sdy.report(step, params, batch).write("report.html")

    The report of a program on several meshes (MPMD), which Shardy has partitioned into fragments, is that of
    `sdy.mpmd.plan`: the timeline, and the time, memory and bytes of each mesh.

    Args:
        program: A function (of `sdy.jit` or any other), the result of `step.lower(...)`, a program of `sdy.compiler`, a
            module, or a file of one, such as `"step.mlir"`.
        *args: The positional arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        hardware: The name of a preset or of a hardware file; adds predicted times.
        compiled: Compile the program with XLA, and add its bytes received and memory.
        findings: Include the findings of `sdy.lint`; above 20,000 operations without trials of fixes.
        under: "jax.jit" adds the collectives and the costs of the program as XLA's partitioner compiles it.
        **kwargs: The keyword arguments of a function.

    Raises:
        ValueError: `under` is another text.
        TypeError: Arguments are given for a program that is not a function, or a function does not take a keyword.
        DiagnosticError: The program cannot be partitioned, or the hardware is unknown.
    """
    check_keywords(report, program, kwargs)
    device = hardware_of(hardware) if isinstance(hardware, str) else hardware
    program = program_of(program, *args, **kwargs)
    if isinstance(program, ModuleOp) and not (compiled or under) and mpmd_function(program):
        return pipeline_report(_title(program), program, device)
    was_propagated = isinstance(program, ModuleOp) and is_propagated(program)
    layouts = linted_layouts(program)
    traced = traced_program(layouts, memory_limit_of(program))
    costs = _compiled(program, traced.local) if compiled else None
    other = _under(under, program) if under else None
    written = WrittenProgram.of(program) if findings else None
    linted = LintedProgram(traced, Thresholds(), written and written.as_tried(layouts), device or default_hardware())
    found = findings_of(linted) if findings else None
    title, notes = _title(traced.module), _notes(traced.module, was_propagated)
    if findings and is_large(traced.module):
        notes.append(f"The program has more than {MOST_OPERATIONS:,} operations: sdy-lint tries fixes of its findings.")
    times = linted.times if device else None
    trace = perfetto_trace(title, times.timeline(), traced) if times else None
    return Report(title, _page_data(linted, device, times, costs, other, notes, found), trace)


def _compiled(program: "ModuleOp | LoweredProgram", local: ModuleOp) -> "Compiled | None":
    """Compile a program, or its partitioned module `local`, with XLA; imports jax."""
    from sdy.passes.account.account import compiled_costs

    return compiled_costs(local if isinstance(program, ModuleOp) else program)


def _under(under: str, program: "ModuleOp | LoweredProgram") -> "Compiled":
    """Return the costs of a program as `under` partitions it; imports jax."""
    from sdy.passes.account.account import costs_under

    return costs_under(under, program)


@cached_walks()
def _page_data(
    linted: LintedProgram,
    hardware: Hardware | None,
    times: StepTimes | None,
    compiled: "Compiled | None",
    under: "Compiled | None",
    notes: Sequence[str],
    found: Findings | None,
) -> Json:
    traced, module, main = linted.traced, linted.module, linted.main
    memory = linted.footprint if hardware else footprint(traced.local)
    numbers = Numbers(module)
    explainer = linted.explainer
    listing = Listing(module, explainer.names if explainer else PresentNames(module, main), numbers)
    listed = listing.as_json()
    network = Network(main_mesh(traced.local), hardware) if hardware else None
    groups = group_equal(linted.collectives, listing)
    largest = largest_intermediates(listing)
    seconds = _seconds(times, traced, listing) if times else []
    cost = times.cost(memory) if times else None
    data: Json = {
        "title": _title(module),
        "headline": headline(groups, memory, describe_recomputed(traced.local), num_row_loops(traced.local), cost),
        "notes": notes,
        "meshes": [
            {"name": escape_line(name), "axes": [(escape_line(axis), size) for axis, size in mesh.axes]}
            for name, mesh in named_meshes(module).items()
        ],
        "collectives": groups_as_json(groups, network, Arguments(module), found, listing, numbers),
        "badges": [(badge.name, badge.text) for badge in BADGES],
        "findings": None if found is None else findings_as_json(found, numbers),
        "memory": memory_as_json(memory, traced, listing, numbers),
        "arrays": arrays_as_json(module, largest, listing, numbers),
        **listed,
        "libraries": _libraries(listing, numbers),
        **_reasons(explainer, [*main.args, *largest], listing, numbers),
        "seconds": seconds,
        "python": _python(traced.local),
        "timeline": timeline_as_json(times.timeline(), traced, listing, numbers) if times else None,
        "hardware": hardware and escape_line(hardware.name),
        "compiled": compiled and {"received": compiled.bytes_received, "memory": compiled.memory},
        "partitioned": f"Partitioned {BESIDE if under else ALONE}.",
        "under": under and under_as_json(under, bytes_received(traced.local), memory.bytes, numbers),
    }
    sources = source_lines(numbers.places())
    return {**data, **numbers.as_json(), "sources": sources}


def _reasons(explainer: Explainer | None, explained: Sequence[SSAValue], listing: Listing, numbers: Numbers) -> Json:
    if explainer is None:
        return {"reasons": [], "steps": {}, "missed": {}}
    return Reasons(explainer, listing, numbers).as_json(explained)


def _python(local: ModuleOp) -> str | None:
    """Return the program of one device as Python, if it has at most 20,000 operations."""
    return None if is_large(local) else to_python(local)


def _libraries(listing: Listing, numbers: Numbers) -> dict[int, int]:
    """Return the line of a library, by row, that the line of a person's file calls."""
    places = ((number, library_line(op.location)) for number, op in enumerate(listing.rows))
    return {number: numbers.place(place) for number, place in places if place is not None}


def _seconds(times: StepTimes, traced: TracedProgram, listing: Listing) -> list[float]:
    """Return the predicted compute time of each row; the last entry is of local operations that stem from no row."""
    seconds = [0.0] * (len(listing.rows) + 1)
    for op, each in times.computation:
        seconds[listing.row(traced.sources.get(op))] += each
    return seconds


def _notes(module: ModuleOp, was_propagated: bool) -> list[str]:
    """Return notes on how the program was propagated."""
    history = history_of(module)
    notes: list[str] = []
    if not was_propagated:
        notes.append("The input was not fully sharded; shardings were propagated for this page.")
    elif not history.runs:
        notes.append("The input was already propagated; the reasons for its shardings are unknown.")
    if hint := unsharded_hint(module):
        notes.append(f"{hint[0].upper()}{hint[1:]}.")
    if history.choice:
        notes.append(f"It was propagated {history.choice}.")
    return notes


def _title(module: ModuleOp) -> str:
    """Return the name of the program's source file, or else of the module."""
    name = module.sym_name.data if module.sym_name else "program"
    place = location_of(module)
    return escape_line(place.filename.rpartition("/")[2] if place else name)
