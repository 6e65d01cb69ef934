"""Candidate layouts of a program, and the selection of the one that moves the fewest bytes.

Shardy's shardings depend on how a program is written, and XLA runs Shardy on another form of the program than JAX
lowers; see `sdy-rewrite-as-hlo`. So a module is propagated both as written and in its HLO form:

    layouts = propagated_layouts(module)        # one or two distinct layouts
    best = cheapest(layouts)                    # partitions each, and predicts its costs
    best.module, best.local                     # the module with all shardings; the per-device program
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from sdy.diagnostics import Diagnostic, DiagnosticError, MemoryLimitWarning, capture, report
from sdy.dialect.attributes import SHARDING, TensorShardingPerValueAttr
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ReshardOp
from sdy.ir.companions import clone, clone_alone
from sdy.ir.walking import operations
from sdy.passes.driver import partition, prepare, run_passes
from sdy.passes.importing.rewrite_as_hlo import RewriteAsHloPass
from sdy.passes.pipelines import PropagationPipeline
from sdy.passes.policy import Policy
from sdy.passes.propagation.provenance.history import CandidateLayout, LayoutChoice, history_of
from sdy.passes.spmd.costs.communication import bytes_received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.local_module import is_local
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp

AS_WRITTEN = "as written"
AS_IN_HLO = "as in XLA's HLO"

_PROPAGATION = PropagationPipeline(unify_meshes=True)

Partitioner = Callable[[ModuleOp], ModuleOp]
"""Partitions a propagated module into the per-device program, and leaves the module unchanged."""

_MAX_MEMORY_RATIO = 1.05
"""The most memory that a layout with fewer bytes received may need, relative to XLA's layout."""


_IN_SOME_FORMS = {BroadcastInDimOp, ConstantOp, ReshapeOp, ReshardOp, TransposeOp, WhileOp}
"""Operations that may exist in one form of a module and not in another."""


_NAMES_IN_HLO = {DynamicSliceOp.name: SliceOp.name}
"""Operations that may have another name in another form of a module."""


@dataclass(frozen=True)
class PropagatedLayout:
    """A propagated module, with the form of the program that was propagated and the captured diagnostics."""

    form: str
    module: ModuleOp
    reported: Sequence[Diagnostic] = ()


@dataclass(frozen=True)
class PartitionedLayout:
    """A propagated module and its per-device program."""

    module: ModuleOp
    local: ModuleOp
    choice: LayoutChoice | None = None
    """The selected and the rejected layouts with their costs, if there were several."""


def propagated_layouts(module: ModuleOp, policy: Policy | None = None, compare: bool = True) -> list[PropagatedLayout]:
    """Propagate `module` in place, and a copy of it in its HLO form.

    Args:
        module: The module; it is the last of the returned layouts.
        policy: Sets shardings before propagation, as in `sdy.propagate`.
        compare: Whether to propagate the HLO form too.

    Returns:
        The distinct layouts, XLA's first: only that of the module as written if both forms get the same shardings.

    Raises:
        DiagnosticError: The module cannot be propagated.
    """
    prepare(module, policy)
    in_hlo = _as_in_hlo(module) if compare and _is_for_several_devices(module) else None
    run_passes(module, [_PROPAGATION])
    layouts = [PropagatedLayout(AS_WRITTEN, module)]
    if in_hlo is not None:
        try:
            with capture() as reported:
                run_passes(in_hlo, [_PROPAGATION])
        except DiagnosticError:
            return layouts
        if _shardings(in_hlo) != _shardings(module):
            layouts.insert(0, PropagatedLayout(AS_IN_HLO, in_hlo, reported))
    return layouts


def layouts_of(module: ModuleOp) -> Sequence[PropagatedLayout]:
    """Return the layout of `module` if it is propagated, else the candidate layouts of a copy of it."""
    return [PropagatedLayout(AS_WRITTEN, module)] if is_propagated(module) else propagated_layouts(clone(module))


def partitioned_copy(module: ModuleOp) -> ModuleOp:
    """Return the per-device program of `module`, which is not changed."""
    local = clone_alone(module)
    partition(local)
    return local


def partitioner_for(memory: str, *, warns: bool = True) -> Partitioner:
    """Return a partitioner to programs whose predicted memory is at most `memory`.

    Args:
        memory: A size such as "2G"; an empty one is no limit.
        warns: Whether to warn of programs that are predicted to need more.
    """

    def limited_copy(module: ModuleOp) -> ModuleOp:
        local = clone_alone(module)
        with capture() as reported:
            partition(local, memory=memory)
        for diagnostic in reported:
            if warns or diagnostic.category is not MemoryLimitWarning:
                report(diagnostic)
        return local

    return limited_copy if memory else partitioned_copy


def cheapest(layouts: Sequence[PropagatedLayout], partitioner: Partitioner = partitioned_copy) -> PartitionedLayout:
    """Partition all layouts, and return the one with which devices receive the fewest bytes, the first of equals.

    A layout whose peak memory exceeds that of the first layout by more than 5 % is not eligible. Diagnostics of the
    selected layout are reported, those of the others are dropped.

    Args:
        layouts: The candidate layouts.
        partitioner: Partitions a module into its per-device program.

    Raises:
        DiagnosticError: No layout can be partitioned; the error is that of the last one.
    """
    if len(layouts) == 1:
        return partitioned(layouts[0].module, partitioner)
    candidates: dict[CandidateLayout, tuple[PropagatedLayout, ModuleOp, Sequence[Diagnostic]]] = {}
    for number, layout in enumerate(layouts, 1):
        try:
            with capture() as reported:
                local = partitioner(layout.module)
        except DiagnosticError:
            if number == len(layouts) and not candidates:
                raise
            continue
        candidate = CandidateLayout(layout.form, bytes_received(local), peak_bytes(local))
        candidates[candidate] = layout, local, [*layout.reported, *reported]
    max_memory = next(iter(candidates)).peak_bytes * _MAX_MEMORY_RATIO
    eligible = (candidate for candidate in candidates if candidate.peak_bytes <= max_memory)
    best = min(eligible, key=lambda candidate: candidate.bytes_received)
    layout, local, reported = candidates.pop(best)
    for diagnostic in reported:
        report(diagnostic)
    choice = LayoutChoice(best, tuple(candidates))
    history_of(layout.module).choice = choice
    return PartitionedLayout(layout.module, local, choice)


def partitioned(module: ModuleOp, partitioner: Partitioner = partitioned_copy) -> PartitionedLayout:
    """Return the layout of `module`, which is propagated, and may be partitioned already."""
    return PartitionedLayout(module, module if is_local(module) else partitioner(module), history_of(module).choice)


def is_propagated(module: ModuleOp) -> bool:
    """Return whether `module` has been propagated, in this process or before it was parsed.

    A parsed module counts as propagated if it is a per-device program, or if operations have shardings and another
    propagation would not change them. Its author or `sdy.auto` may have set the shardings of a few operations.
    """
    if history_of(module).runs or is_local(module):
        return True
    if not any(SHARDING in op.attributes for op in operations(module)):
        return False
    copy = clone(module)
    try:
        with capture():
            prepare(copy)
            run_passes(copy, [_PROPAGATION])
    except DiagnosticError:
        return False
    return _shardings(copy) == _shardings(module)


def _as_in_hlo(module: ModuleOp) -> ModuleOp | None:
    """Return a copy of `module` in its HLO form; None if it equals `module`."""
    copy = clone(module)
    before = list(operations(copy))
    run_passes(copy, [RewriteAsHloPass()])
    return None if list(operations(copy)) == before else copy


def _is_for_several_devices(module: ModuleOp) -> bool:
    return any(mesh.size > 1 for mesh in named_meshes(module).values())


def _shardings(module: ModuleOp) -> list[tuple[str, Attribute | None, Attribute | None]]:
    """Return the shardings of the operations that all forms of a module share, for comparison.

    Runs of equal entries count once, since operations may have been duplicated with the constants that they read.
    """
    shardings = (
        (_NAMES_IN_HLO.get(op.name, op.name), _split(op.attributes.get(SHARDING)), op.properties.get("res_attrs"))
        for op in operations(module)
        if op.__class__ not in _IN_SOME_FORMS
    )
    return [one for one, _ in groupby(shardings)]


def _split(attribute: Attribute | None) -> Attribute | None:
    """Return the shardings of an operation's results; None, as without shardings, if all results are replicated."""
    if isinstance(attribute, TensorShardingPerValueAttr):
        return attribute if any(not each.is_fully_replicated for each in attribute.data) else None
    return attribute
