"""`sdy.report`: a page of where the bytes of a program go, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sdy import gc_control
from sdy.diagnostics import Location, error, location_of
from sdy.dialect.meshes import main_mesh, named_meshes
from sdy.passes.account.causes import TracedProgram, traced_program
from sdy.passes.account.collectives import collectives
from sdy.passes.account.partitioned_program import Program, propagated_program
from sdy.passes.account.report.arrays import arrays_as_json, largest_intermediates
from sdy.passes.account.report.exchanges import groups_alike, groups_as_json, seconds_of
from sdy.passes.account.report.headline import headline
from sdy.passes.account.report.listing import Listing
from sdy.passes.account.report.memory import memory_as_json
from sdy.passes.account.report.numbering import Json, Numbers
from sdy.passes.account.report.page import GENERATOR, page
from sdy.passes.account.report.reasons import Reasons
from sdy.passes.account.report.sources import source_lines
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import write
from sdy.passes.layouts import is_propagated
from sdy.passes.propagation.provenance.explain import Explainer
from sdy.passes.propagation.provenance.history import history_of
from sdy.passes.propagation.provenance.present_names import PresentNames
from sdy.passes.spmd.costs.footprint import footprint
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import compute_times
from sdy.shown_text import shown

if TYPE_CHECKING:
    from sdy.passes.account.account import Compiled

_HEIGHT = 720
"""The pixels that a page is high in a notebook."""

_BEGINNING = 1000
"""So many characters of a file say whether it is a report."""


@dataclass(frozen=True, repr=False)
class Report:
    """A page about a program: a file that needs no other, and no network."""

    title: str
    found: Json
    """What the page tells, as it is in the file."""

    @cached_property
    def html(self) -> str:
        """The text of the file."""
        return page(self.title, self.found)

    @property
    def headline(self) -> Sequence[str]:
        """What the page says first."""
        return self.found["headline"]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the file. Raises DiagnosticError where it cannot be written, or would take the place of a file that is
        no report, unless `force` is given."""
        if not force:
            check_replaceable(path)
        write(str(path), self.html)

    def _repr_html_(self) -> str:
        """The page in a notebook, in a frame of its own."""
        frame = f'style="width: 100%; height: {_HEIGHT}px; border: 0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({self.title!r}): report.write('report.html') writes the page"


@gc_control.paused()
def report(
    program: Program,
    *args: Any,
    hardware: Hardware | str | None = None,
    compiled: bool = False,
    **kwargs: Any,
) -> Report:
    """A page of where the bytes of a program go, and why: collectives with their reasons, memory, arrays, operations.

        sdy.report(step, params, batch).write("report.html")

    `program`, `args` and `kwargs` are what `sdy.account` takes. With `hardware`, the name of a preset or of a file, it
    tells how long everything is predicted to take; with `compiled`, what XLA makes of the program beside what is
    predicted. In a notebook, the page is shown. Raises what `sdy.account` raises.
    """
    device = hardware_of(hardware) if isinstance(hardware, str) else hardware
    given = isinstance(program, ModuleOp) and is_propagated(program)
    if compiled and not isinstance(program, ModuleOp):
        from sdy.passes.account.jax_program import lowered

        program, args, kwargs = lowered(program, *args, **kwargs), (), {}
    traced = traced_program(propagated_program(program, *args, **kwargs))
    made = _compiled(program, traced.local) if compiled else None
    return Report(_title(traced.module), _found(traced, device, made, _notes(traced.module, given)))


def _compiled(program: Program, local: ModuleOp) -> "Compiled | None":
    """What XLA makes of a program, of which a device runs `local`; this takes jax."""
    from sdy.passes.account.account import compiled_costs
    from sdy.passes.jax.stages import Lowered

    return compiled_costs(program if isinstance(program, Lowered) else local)


def check_replaceable(path: str | Path) -> None:
    """Raise DiagnosticError where there is a file that is no report."""
    if not Path(path).is_file():
        return
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        if GENERATOR not in file.read(_BEGINNING):
            message = "there is a file that is no report: --force, or force=True, replaces it"
            raise error(Location(str(path), 1, 1), message)


def _found(traced: TracedProgram, hardware: Hardware | None, made: "Compiled | None", notes: Sequence[str]) -> Json:
    """What the page tells."""
    module = traced.module
    main = main_function(module)
    numbers = Numbers(module)
    listing = Listing(module, PresentNames(module, main), numbers)
    listed = listing.as_json()
    mesh, exchanged = main_mesh(traced.local), collectives(traced)
    groups = groups_alike(exchanged, listing)
    memory = footprint(traced.local)
    largest = largest_intermediates(listing)
    seconds = _seconds(traced, listing, hardware) if hardware else []
    waiting = sum(seconds_of(each, mesh, hardware) for each in exchanged) if hardware else 0.0
    found: Json = {
        "title": _title(module),
        "headline": headline(groups, memory, (sum(seconds), waiting) if hardware else None),
        "notes": notes,
        "meshes": [
            {"name": shown(name), "axes": [(shown(axis), size) for axis, size in mesh.axes]}
            for name, mesh in named_meshes(module).items()
        ],
        "collectives": groups_as_json(groups, mesh, hardware, listing, numbers),
        "memory": memory_as_json(memory, traced, listing, numbers),
        "arrays": arrays_as_json(module, largest, listing, numbers),
        **listed,
        **_reasons(module, [*main.args, *largest], listing, numbers),
        "seconds": seconds,
        "hardware": hardware and shown(hardware.name),
        "compiled": made and {"received": made.bytes_received, "memory": made.memory},
    }
    sources = source_lines(numbers.places())
    return {**found, **numbers.as_json(), "sources": sources}


def _reasons(module: ModuleOp, looked_for: Sequence[SSAValue], listing: Listing, numbers: Numbers) -> Json:
    if not history_of(module).runs:
        return {"reasons": [], "steps": {}, "missed": {}}
    return Reasons(Explainer(module, main_function(module)), listing, numbers).as_json(looked_for)


def _seconds(traced: TracedProgram, listing: Listing, hardware: Hardware) -> list[float]:
    """How long a device computes what was made from each row; at the end, from none."""
    seconds = [0.0] * (len(listing.rows) + 1)
    for op, each in compute_times(traced.local, hardware):
        seconds[listing.row(traced.sources.get(op))] += each
    return seconds


def _notes(module: ModuleOp, given: bool) -> list[str]:
    """What there is to know of how a program was propagated, which was `given` with its shardings or not."""
    history = history_of(module)
    notes: list[str] = []
    if not given:
        notes.append("Shardings were propagated for this page: not all tensors had some.")
    elif not history.runs:
        notes.append("The program was given with the shardings of all of its tensors: there are no reasons for them.")
    if history.choice:
        notes.append(f"It was propagated {history.choice}.")
    return notes


def _title(module: ModuleOp) -> str:
    """The file that a program is from, or what the module is called."""
    name = module.sym_name.data if module.sym_name else "program"
    place = location_of(module)
    return shown(place.filename.rpartition("/")[2] if place else name)
