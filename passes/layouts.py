"""The layout of a program where several can be had: the one with which devices receive the fewest bytes.

Shardy's answer depends on how a program is written, and XLA asks Shardy about another text than JAX lowers it to; see
`sdy-rewrite-as-hlo`. So a module is propagated both as it is written and as it is in HLO:

    layouts = propagated_layouts(module)        # as many as there are different ones
    chosen = cheapest(layouts)                  # partitioned; and predicted from that what each costs
    chosen.module, chosen.local                 # with all shardings; the program of one device
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.diagnostics import Diagnostic, DiagnosticError, capture, report
from sdy.dialect.attributes import SHARDING
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ReshardOp
from sdy.ir.companions import clone, clone_alone
from sdy.ir.walking import operations
from sdy.passes.driver import expand, partition, propagate, run_passes
from sdy.passes.importing.rewrite_as_hlo import RewriteAsHloPass
from sdy.passes.policy.policy import Policy
from sdy.passes.propagation.provenance.history import history_of
from sdy.passes.propagation.provenance.ways import Choice, Way
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.local_module import is_local
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

AS_WRITTEN = "as written"
AS_IN_HLO = "as in XLA's HLO"

Partitioner = Callable[[ModuleOp], ModuleOp]
"""Makes the program of one device of a module with its shardings, which stays as it is."""

_MORE_MEMORY = 1.05
"""How much more memory than the layout that XLA has may be needed for one with which devices receive less."""


_IN_SOME_FORMS = {BroadcastInDimOp, ConstantOp, ReshapeOp, ReshardOp, TransposeOp, WhileOp}
"""Operations that one form of a module may have and another not."""


@dataclass(frozen=True)
class PropagatedLayout:
    """A module whose tensors have shardings, what it looked like when it got them, and what was reported of it."""

    form: str
    module: ModuleOp
    reported: Sequence[Diagnostic] = ()


@dataclass(frozen=True)
class PartitionedLayout:
    """A `module` whose tensors have shardings, and the program of one device, `local`, that was made of it.

    `choice` is the way in which it was propagated and what the others would have cost, where there were others.
    """

    module: ModuleOp
    local: ModuleOp
    choice: Choice | None = None


def propagated_layouts(module: ModuleOp, policy: Policy | None = None, compare: bool = True) -> list[PropagatedLayout]:
    """What propagation makes of `module`, which is itself the last of them, in its different forms.

    Before, `policy` chooses as in `sdy.propagate`. Without `compare`, that is the module as it is written alone, as it
    is where another form has the same shardings. Raises DiagnosticError where the module cannot be propagated.
    """
    expand(module, policy)
    in_hlo = _as_in_hlo(module) if compare and _is_for_several_devices(module) else None
    propagate(module)
    layouts = [PropagatedLayout(AS_WRITTEN, module)]
    if in_hlo is not None:
        try:
            with capture() as reported:
                propagate(in_hlo)
        except DiagnosticError:
            return layouts
        if _shardings(in_hlo) != _shardings(module):
            layouts.insert(0, PropagatedLayout(AS_IN_HLO, in_hlo, reported))
    return layouts


def layouts_of(module: ModuleOp) -> Sequence[PropagatedLayout]:
    """The layout that `module` has if it is propagated, else those of a copy of it."""
    return [PropagatedLayout(AS_WRITTEN, module)] if is_propagated(module) else propagated_layouts(clone(module))


def partitioned_copy(module: ModuleOp) -> ModuleOp:
    """The program of one device of `module`, which stays as it is."""
    local = clone_alone(module)
    partition(local)
    return local


def cheapest(layouts: Sequence[PropagatedLayout], partitioner: Partitioner = partitioned_copy) -> PartitionedLayout:
    """The layout with which devices receive the fewest bytes, the first of equal ones; partitioned.

    One that takes more memory than the first by more than a twentieth is not chosen. Raises DiagnosticError where the
    last cannot be partitioned, nor any other.
    """
    if len(layouts) == 1:
        return partitioned(layouts[0].module, partitioner)
    ways: dict[Way, tuple[PropagatedLayout, ModuleOp, Sequence[Diagnostic]]] = {}
    for number, layout in enumerate(layouts, 1):
        try:
            with capture() as reported:
                local = partitioner(layout.module)
        except DiagnosticError:
            if number == len(layouts) and not ways:
                raise
            continue
        way = Way(layout.form, bytes_received(local), peak_bytes(local))
        ways[way] = layout, local, [*layout.reported, *reported]
    most_memory = next(iter(ways)).peak_bytes * _MORE_MEMORY
    taken = min((way for way in ways if way.peak_bytes <= most_memory), key=lambda way: way.bytes_received)
    layout, local, reported = ways.pop(taken)
    for diagnostic in reported:
        report(diagnostic)
    choice = Choice(taken, tuple(ways))
    history_of(layout.module).choice = choice
    return PartitionedLayout(layout.module, local, choice)


def partitioned(module: ModuleOp, partitioner: Partitioner = partitioned_copy) -> PartitionedLayout:
    """The layout that `module` has, which is propagated, and may be partitioned already."""
    return PartitionedLayout(module, module if is_local(module) else partitioner(module), history_of(module).choice)


def is_propagated(module: ModuleOp) -> bool:
    """Whether propagation has had its say in `module`: in this process, or in the text that was read."""
    return (
        bool(history_of(module).runs) or is_local(module) or any(SHARDING in op.attributes for op in operations(module))
    )


def _as_in_hlo(module: ModuleOp) -> ModuleOp | None:
    """A copy of `module` in the form that it has in HLO, None where that is the same."""
    copy = clone(module)
    before = list(operations(copy))
    run_passes(copy, [RewriteAsHloPass()])
    return None if list(operations(copy)) == before else copy


def _is_for_several_devices(module: ModuleOp) -> bool:
    return any(mesh.size > 1 for mesh in named_meshes(module).values())


def _shardings(module: ModuleOp) -> list[tuple[str, Attribute | None, Attribute | None]]:
    """What those operations say of shardings that all forms of a module have; constants may have been copied."""
    said = (
        (op.name, op.attributes.get(SHARDING), op.properties.get("res_attrs"))
        for op in operations(module)
        if op.__class__ not in _IN_SOME_FORMS
    )
    return [one for one, _ in groupby(said)]
