"""`sdy.auto`: the compiler chooses how the arguments of a program are split.

The program is folded, so that a layout can be estimated in milliseconds; layouts are searched; and the best few, with
those that experts would take, are propagated and partitioned, so that what a device would run decides.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult
from xdsl.rewriter import InsertPoint

from sdy.byte_sizes import parse_bytes, shown_bytes
from sdy.diagnostics import capture, error, location_of, report, warn
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.foreign_dialects import adopt
from sdy.ir.companions import clone
from sdy.ir.editing import insert
from sdy.mesh import Mesh
from sdy.passes.auto.choices import Choice, find_choices, find_choices_of_results
from sdy.passes.auto.estimate import Estimator, Held
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.origins import choosable_results, number_operations
from sdy.passes.auto.plan import Plan, Row
from sdy.passes.auto.search import Candidate, Search
from sdy.passes.auto.truth import LayoutOfModule, Truth, truth_of
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.driver import expand, run_passes
from sdy.passes.pipelines import PropagationPipeline
from sdy.passes.propagation.user_priority_propagate import UserPriorityPropagatePass
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.sharding import TensorSharding

_TO_PARTITION = 3
"""So many of the layouts that are estimated to be the best are partitioned at most, beside the best of experts."""

_FAR_OFF = 1.25
"""An expert's layout is partitioned unless it is estimated to be so many times slower: estimates can be wrong."""

_LARGEST = 3
"""So much is said of what takes memory."""

_NEW_MESH = "mesh"
_UNCHOSEN = "what is given alone"


def auto(
    module: ModuleOp,
    *,
    mesh: Mesh | Mapping[str, int] | None = None,
    hardware: Hardware | str = "h100-8",
    memory: str | float | None = None,
    time_limit: float = 60.0,
    intermediates: bool = True,
    progress: Callable[[Candidate], None] | None = None,
) -> Plan:
    """Choose how a program is split over a mesh, and write it into `module` as shardings.

    Arguments of the main function that have no sharding get one; so do large results of operations, where that makes
    a step faster or lets it fit, unless `intermediates` is false.

        plan = sdy.auto(module, mesh={"data": 4, "model": 2}, hardware="h100-8", memory="80G")
        print(plan)

    What is given stays: shardings of other arguments and of results, constraints, sharding groups. `mesh` is that on
    which the program is to run, by default the module's own; `hardware` the name of a preset or of a file; `memory` the
    bytes that a device may use, by default all that it has. The search ends after `time_limit` seconds, or when it is
    interrupted, with the best layout so far, which need not fit: the plan says so. `progress` is told of each layout
    that is better than those before. Raises DiagnosticError for a module that cannot be propagated, for one with
    several meshes, none, or another than `mesh`, and for unknown hardware; ValueError for what is no number of bytes.
    """
    deadline = time.monotonic() + time_limit
    device = hardware_of(hardware) if isinstance(hardware, str) else hardware
    limit = device.memory if memory is None else parse_bytes(memory) if isinstance(memory, str) else int(memory)
    adopt(module)
    mesh_name, on = _mesh_of(module, mesh)
    program = fold(prepared(module))
    choices = find_choices(program, mesh_name, on)
    of_results = find_choices_of_results(program, mesh_name, on) if intermediates else ()
    _warn_of_idle_axes(module, on, choices, of_results)
    estimator = Estimator(program, mesh_name, device)
    search = Search(estimator, choices, of_results, limit, deadline, progress or (lambda _: None))
    experts = {_UNCHOSEN: search.candidate(_UNCHOSEN, {}).assignment}
    with suppress(KeyboardInterrupt):
        experts |= expert_layouts(choices, on, search)
    found = search.run(experts)
    known = [search.candidate(name, layout) for name, layout in experts.items()]

    truths: list[tuple[LayoutOfModule, Truth]] = []

    def in_truth(candidate: Candidate) -> Truth:
        layout = layout_of(choices, of_results, search, candidate)
        truth = next((truth for other, truth in truths if other == layout), None)
        if truth is None:
            truth = truth_of(module, layout, mesh_name, device)
            truths.append((layout, truth))
        return truth

    best, true_costs = _best_in_truth(found, min(known, key=search.rank), search, in_truth)
    others = {each.name: true_costs.get(each.cost, each.cost) for each in known} if choices else {}
    rows = _rows(module, choices, of_results, best, search)
    layout_of(choices, of_results, search, best).write(module)
    for diagnostic in in_truth(best).reported:
        report(diagnostic)
    largest = [_words(held) for held in search.largest(best)[:_LARGEST]]
    least, asked = estimator.least_seconds, estimator.asked
    return Plan(on, device, limit, rows, true_costs[best.cost], best.name, largest, others, least, asked)


def _best_in_truth(
    found: Sequence[Candidate], expert: Candidate, search: Search, in_truth: Callable[[Candidate], Truth]
) -> tuple[Candidate, Mapping[StepCost, StepCost]]:
    """The best layout when the most promising ones are partitioned, and what these then cost, by what was estimated."""
    # Where no estimate is of what fits, one that is faster may be of what needs less in truth.
    fastest = sorted(found, key=lambda each: each.cost.seconds)
    promising = [*search.different(found)[:_TO_PARTITION], expert, *search.different(fastest[:_TO_PARTITION])]
    best, costs = promising[0], dict[StepCost, StepCost]()
    for each in promising:
        slower = _FAR_OFF if each is expert else 1.0
        if each.cost not in costs and (
            not costs or search.rank_of(each.cost) < search.rank_of(costs[best.cost], slower)
        ):
            costs[each.cost] = in_truth(each).cost
            best = min((best, each), key=lambda candidate: search.rank_of(costs[candidate.cost]))
    return best, costs


def _words(held: Held) -> str:
    """`12 tensor<64x2048xf32> of stablehlo.add at model.py:3:5, 6 MiB`."""
    owner = held.value.owner
    source = owner.name if isinstance(owner, Operation) else "arguments"
    place = location_of(held.value)
    return f"{held.times} {held.value.type} of {source}{f' at {place}' if place else ''}, {shown_bytes(held.bytes)}"


def layout_of(
    choices: Sequence[Choice], of_results: Sequence[Choice], search: Search, candidate: Candidate
) -> LayoutOfModule:
    """What is written into a module for a candidate."""
    shardings = search.shardings(candidate.assignment)
    arguments = {
        index: choice.final(shardings[node])
        for choice in choices
        for node, indices in choice.nodes.items()
        for index in indices
    }
    chosen = [choice for choice in of_results if choice.node in candidate.assignment]
    results = {number: choice.final(shardings[choice.node]) for choice in chosen for number in choice.origins}
    return LayoutOfModule(arguments, results)


def _mesh_of(module: ModuleOp, mesh: Mesh | Mapping[str, int] | None) -> tuple[str, Mesh]:
    """The mesh to run on, and its name in `module`, which gets it if it has none."""
    meshes = {name: each for name, each in named_meshes(module).items() if not each.is_empty}
    wanted = mesh if isinstance(mesh, Mesh | None) else Mesh.of(mesh)
    if not meshes:
        if wanted is None:
            raise error(module, "the module has no mesh: say which one it is to run on")
        insert(MeshOp(_NEW_MESH, wanted), InsertPoint.at_start(module.body.block))
        return _NEW_MESH, wanted
    if len(meshes) > 1:
        raise error(module, f"the module has {len(meshes)} meshes: @{', @'.join(meshes)}")
    ((name, present),) = meshes.items()
    if wanted is not None and wanted != present:
        axes = ", ".join(f"{axis}={size}" for axis, size in present.axes)
        raise error(module, f"the module has a mesh already, @{name} of {axes}: leave out the other one")
    return name, present


def _warn_of_idle_axes(module: ModuleOp, mesh: Mesh, choices: Sequence[Choice], of_results: Sequence[Choice]) -> None:
    """Tell of axes that nothing can be split over, and so devices that all compute the same."""
    if not choices:
        return
    main = main_function(module)
    largest = max(choices, key=lambda choice: max(choice.shape))
    name, size = argument_names(main)[largest.arguments[0]], max(largest.shape)
    used = {ref.name for choice in (*choices, *of_results) for option in choice.options for ref in option.axes()}
    for axis, devices in mesh.axes:
        if axis not in used:
            problem = f"nothing can be split over axis '{axis}' of {devices} devices: it divides no dimension"
            warn(main, f"{problem}, of which the largest is {size}, of {name}")


def prepared(module: ModuleOp) -> ModuleOp:
    """A copy of `module` as propagation gets it, without calls."""
    copy = clone(module)
    number_operations(copy)
    passes = PropagationPipeline().passes(copy)
    with capture():
        expand(copy)
        inline_calls(copy)
        run_passes(copy, takewhile(lambda step: not isinstance(step, UserPriorityPropagatePass), passes))
    return copy


def _rows(
    module: ModuleOp, choices: Sequence[Choice], of_results: Sequence[Choice], best: Candidate, search: Search
) -> Sequence[Row]:
    """What there was to choose, with what would have been chosen otherwise; results only where it was chosen."""
    main = main_function(module)
    names = argument_names(main)
    shardings = search.shardings(best.assignment)
    choosable = choosable_results(module)
    rows: list[Row] = []
    for choice in [*choices, *(each for each in of_results if each.node in best.assignment)]:
        runner_up = search.runner_up(choice, best)
        otherwise = None if runner_up is None else choice.final(search.shardings(runner_up.assignment)[choice.node])
        more_seconds = None if runner_up is None else runner_up.cost.seconds - best.cost.seconds
        if choice.origins:
            results = [choosable[number] for number in choice.origins]
            named, type_ = tuple(map(_name_of_result, results)), str(results[0].type)
            rows.append(Row((), named, type_, choice.final(shardings[choice.node]), otherwise, more_seconds))
            continue
        arguments: dict[TensorSharding, list[int]] = defaultdict(list)
        for node, indices in choice.nodes.items():
            arguments[choice.final(shardings[node])] += indices
        for sharding, indices in arguments.items():
            indices.sort()
            named, type_ = tuple([names[index] for index in indices]), str(main.args[indices[0]].type)
            rows.append(Row(tuple(indices), named, type_, sharding, otherwise, more_seconds))
    return rows


def _name_of_result(result: OpResult) -> str:
    """`stablehlo.add at model.py:3:5`."""
    place = location_of(result)
    return f"{result.op.name} at {place}" if place else result.op.name
