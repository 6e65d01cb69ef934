"""`sdy.auto`: automatic choice of the shardings of arguments and large intermediate values.

1. Fold the program: merge repeated layers, so that the cost of a layout is estimated in milliseconds.
2. Search layouts by coordinate descent on the estimated cost.
3. Propagate and partition the best few, and the layouts that an expert would write. Choose the one whose partitioned
   program costs least.
4. Recompute values of the backward pass in faster layouts that need too much memory, and choose the one that fits and
   costs least.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult
from xdsl.rewriter import InsertPoint

from sdy import gc_control
from sdy.diagnostics import capture, error, location_of, report, warn
from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import MeshOp
from sdy.foreign_dialects import adopt
from sdy.formatting import format_bytes, parse_bytes
from sdy.ir.companions import clone
from sdy.ir.editing import insert
from sdy.ir.walking import operations
from sdy.mesh import Mesh, MeshOfJax
from sdy.passes.auto.choices import Choice, find_choices, find_choices_of_results
from sdy.passes.auto.estimate import Estimator, Held
from sdy.passes.auto.experts import expert_layouts
from sdy.passes.auto.folded_program import fold
from sdy.passes.auto.limits import Limits
from sdy.passes.auto.origins import choosable_results, number_operations
from sdy.passes.auto.plan import Difference, Plan, Row
from sdy.passes.auto.search import Candidate, Rank, Search
from sdy.passes.auto.truth import LayoutOfModule, PartitionedCost, truth_of
from sdy.passes.auto.what_if import Alternatives
from sdy.passes.common.argument_names import argument_names, given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.memory_limit import set_memory_limit
from sdy.passes.driver import prepare, run_passes
from sdy.passes.pipelines import PropagationPipeline
from sdy.passes.spmd.costs.hardware import Hardware, hardware_of
from sdy.passes.spmd.costs.step_time import StepCost
from sdy.progress import report_to
from sdy.sharding import TensorSharding

_ALMOST_FITS = 1.25
"""A layout may need less memory than its estimate by this factor once it is partitioned."""

_FEWEST_PARTITIONED, _MOST_PARTITIONED = 3, 12
"""Number of the layouts with the best estimates that are partitioned, besides the best expert layout: the most for
small programs, the fewest for large ones."""

_OPERATIONS_TO_PARTITION = 10_000
"""Number of operations in all programs that are partitioned, between the fewest and the most programs."""

_FAR_OFF = 1.25
"""An expert layout, or any of a small program, is partitioned unless its estimate is slower by this factor, since
estimates have errors."""

_AS_FAST = 1.0001
"""Of layouts whose step times differ by at most this factor, the one with the least memory is chosen."""

_USUAL_ERROR = 1.03
"""Any other layout is partitioned unless its estimate is slower by this factor, by which most estimates are right."""

_MOST_RECOMPUTED = 4
"""Number of layouts that need too much memory for which values to recompute are chosen."""

_CLEARLY_LESS = 0.9
"""Values to recompute are chosen for layouts whose memory differs by this factor."""

_LARGEST = 3
"""Number of the largest live values that a plan names."""

_NEW_MESH = "mesh"
_UNCHOSEN = "the given shardings alone"


@gc_control.paused()
def auto(
    module: ModuleOp,
    *,
    mesh: Mesh | MeshOfJax | Mapping[str, int] | None = None,
    hardware: Hardware | str = "h100-8",
    memory: str | float | None = None,
    time_limit: float | None = None,
    intermediates: bool = True,
    progress: Callable[[Candidate], None] | None = None,
) -> Plan:
    """Choose shardings for a program, and write them into `module`.

        plan = sdy.auto(module, mesh={"data": 4, "model": 2}, hardware="h100-8", memory="80G")
        print(plan)

    Arguments of the main function without a sharding get one. Large results of operations get one if that makes a step
    faster or lets it fit into memory. Existing shardings, constraints and sharding groups are kept.

    Args:
        module: The program; it is modified.
        mesh: The mesh to run on, a mesh of jax or the size of each axis; by default the module's own.
        hardware: The name of a preset or of a hardware file.
        memory: The bytes that a device may use, as a number or a size such as "80G"; by default all that it has. If
            recomputing values of the backward pass lets a faster layout fit, `Plan.recomputation` names them, and
            `sdy.partition` recomputes them.
        time_limit: The seconds after which the search ends with the best layout so far; an interrupt ends it as well.
            By default, it ends when it converges, or after an amount of work that is the same on every machine.
        intermediates: Also choose shardings of large results of operations.
        progress: Called with each layout that is better than those before.

    Returns:
        The chosen shardings and their predicted cost. If no layout fits into memory, `Plan.fits` is false.

    Raises:
        DiagnosticError: The module cannot be propagated; it has several meshes, none, or another than `mesh`; or the
            hardware is unknown.
        TypeError: `module` is not a module, such as a JAX program that `sdy.from_jax` has not converted.
        ValueError: `memory` is not a size.
    """
    limits = Limits(time_limit)
    device = hardware_of(hardware) if isinstance(hardware, str) else hardware
    limit = device.memory if memory is None else parse_bytes(memory)
    adopt(module)
    mesh_name, target_mesh = _mesh_of(module, mesh)
    program = fold(prepared(module))
    choices = find_choices(program, mesh_name, target_mesh)
    of_results = find_choices_of_results(program, mesh_name, target_mesh) if intermediates else ()
    _warn_of_unusable_axes(module, target_mesh, choices, of_results)
    estimator = Estimator(program, mesh_name, device)
    search = Search(estimator, choices, of_results, limit, limits, progress or (lambda _: None))
    with limits.lifted():
        given = search.estimated([(_UNCHOSEN, {})])
    experts = [*given, *search.estimated(expert_layouts(choices, target_mesh, search))]
    candidates = search.run(experts)

    truths: list[tuple[LayoutOfModule, int | None, PartitionedCost]] = []

    def in_truth(candidate: Candidate, memory: int | None = None) -> PartitionedCost:
        layout = layout_of(choices, of_results, search, candidate)
        truth = next((truth for other, limit, truth in truths if (other, limit) == (layout, memory)), None)
        if truth is None:
            truth = truth_of(module, layout, mesh_name, device, memory)
            truths.append((layout, memory, truth))
        return truth

    best_expert = min(experts, key=search.rank)
    to_partition = _OPERATIONS_TO_PARTITION // len([*operations(module)])
    most = min(max(to_partition, _FEWEST_PARTITIONED), _MOST_PARTITIONED)
    best, partitioned = _best_when_partitioned(candidates, best_expert, search, in_truth, limit, most, limits)
    best = _best_with_recomputation(best, candidates, search, in_truth, limit, partitioned, limits)
    recomputation = partitioned[best.cost].recomputation if best.cost in partitioned else None

    def cost_of(candidate: Candidate) -> StepCost:
        truth = partitioned.get(candidate.cost)
        return candidate.cost if truth is None else truth.cost

    others = {each.name: cost_of(each) for each in experts} if choices else {}
    rows = _rows(module, choices, of_results, best, search)
    layout_of(choices, of_results, search, best).write(module)
    if recomputation is not None:
        set_memory_limit(module, limit, device.source)
    for diagnostic in partitioned[best.cost].reported if best.cost in partitioned else ():
        report(diagnostic)
    largest = [_describe(held) for held in search.largest(best)[:_LARGEST]]
    main = main_function(module)
    names = argument_names(main)
    choice_of = {
        name: choice
        for choice in choices
        for index in choice.arguments
        for name in (names[index], given_name(main.args[index]))
        if name
    }
    return Plan(
        target_mesh,
        device,
        limit,
        rows,
        cost_of(best),
        best.name,
        largest,
        others,
        estimator.least_seconds,
        estimator.estimated,
        limits.reached,
        [each.cost for each in search.front()],
        Alternatives(search, choice_of, best, mesh_name, limit, limits),
        clone(module),
        recomputation,
    )


def _best_when_partitioned(
    candidates: Sequence[Candidate],
    expert: Candidate,
    search: Search,
    in_truth: Callable[[Candidate], PartitionedCost],
    limit: int,
    most: int,
    limits: Limits,
) -> tuple[Candidate, dict[StepCost, PartitionedCost]]:
    """Partition up to `most` promising candidates until the deadline, or none after an interrupt.

    Returns:
        The best one, with the least memory of those that are as fast, and the partitioned programs by the estimates of
        their costs.
    """
    fastest = sorted([*candidates, *search.front()], key=lambda each: each.cost.seconds)
    almost_fit = [each for each in fastest if each.cost.memory <= _ALMOST_FITS * limit]
    least = search.different([*search.front(), *candidates])
    promising = [*search.different(candidates)[:most], expert, *(almost_fit or least)[:most]]
    best, partitioned, truths = promising[0], list[Candidate](), dict[StepCost, PartitionedCost]()

    def true_cost(candidate: Candidate) -> StepCost:
        return truths[candidate.cost].cost

    def rank(candidate: Candidate, slower: float = 1.0) -> Rank:
        return search.rank_of(true_cost(candidate), slower)

    # The reports of the passes are the points at which the deadline ends them.
    with limits.obeyed(), report_to(lambda _: limits.check_deadline()):
        for each in promising if limits.reached != "interrupt" else ():
            slower = _FAR_OFF if each is expert or most == _MOST_PARTITIONED else _USUAL_ERROR
            less = max(each.cost.memory / _ALMOST_FITS, limit)
            possible = replace(each.cost, memory=min(each.cost.memory, int(less)))
            if each.cost not in truths and (not truths or search.rank_of(possible) < rank(best, slower)):
                truths[each.cost] = in_truth(each)
                partitioned.append(each)
                best = min(partitioned, key=rank)

    as_fast = [each for each in partitioned if true_cost(each).seconds <= _AS_FAST * true_cost(best).seconds]
    return min(as_fast, key=lambda each: true_cost(each).memory, default=best), truths


def _best_with_recomputation(
    best: Candidate,
    candidates: Sequence[Candidate],
    search: Search,
    in_truth: Callable[[Candidate, int], PartitionedCost],
    limit: int,
    truths: dict[StepCost, PartitionedCost],
    limits: Limits,
) -> Candidate:
    """Partition faster layouts than `best` that need too much memory, and recompute values until they fit.

    Starts with the fastest layout; each next one needs clearly less memory.

    Returns:
        The best layout. Its cost in `truths` is that with recomputation, if it recomputes values.
    """

    def cost_of(candidate: Candidate) -> StepCost:
        truth = truths.get(candidate.cost)
        return candidate.cost if truth is None else truth.cost

    too_large = [each for each in [*candidates, *search.front()] if cost_of(each).memory > limit]
    tried, memory = 0, math.inf
    with limits.obeyed(), report_to(lambda _: limits.check_deadline()):
        for each in sorted(too_large, key=lambda each: cost_of(each).seconds):
            cost, present = cost_of(each), cost_of(best)
            is_slow = present.memory <= limit and cost.seconds >= present.seconds
            if limits.reached == "interrupt" or tried == _MOST_RECOMPUTED or is_slow:
                break
            if cost.memory > _CLEARLY_LESS * memory:
                continue
            tried, memory = tried + 1, cost.memory
            truth = in_truth(each, limit)
            if search.rank_of(truth.cost) < search.rank_of(present):
                truths[each.cost] = truth
                best = each
    return best


def _describe(held: Held) -> str:
    """Format live values as `12 x tensor<64x2048xf32>, result of stablehlo.add at model.py:3:5: 6 MiB`."""
    owner = held.value.owner
    source = f"result of {owner.name}" if isinstance(owner, Operation) else "argument"
    place = location_of(held.value)
    at = f" at {place}" if place else ""
    return f"{held.times} x {held.value.type}, {source}{at}: {format_bytes(held.bytes)}"


def layout_of(
    choices: Sequence[Choice], of_results: Sequence[Choice], search: Search, candidate: Candidate
) -> LayoutOfModule:
    """Return the shardings that a candidate writes into a module."""
    shardings = search.shardings(candidate.assignment)
    arguments = {
        index: choice.final(shardings[node], candidate.assignment.get(choice.node))
        for choice in choices
        for node, indices in choice.nodes.items()
        for index in indices
    }
    assigned = [choice for choice in of_results if choice.node in candidate.assignment]
    results = {
        number: choice.final(shardings[choice.node], candidate.assignment[choice.node])
        for choice in assigned
        for number in choice.origins
    }
    return LayoutOfModule(arguments, results)


def _mesh_of(module: ModuleOp, mesh: Mesh | MeshOfJax | Mapping[str, int] | None) -> tuple[str, Mesh]:
    """Return the mesh to run on and its name; a module without a mesh gets it."""
    meshes = {name: each for name, each in named_meshes(module).items() if each.axes}
    wanted = mesh if isinstance(mesh, Mesh | None) else Mesh.of(mesh)
    if not meshes:
        if wanted is None:
            raise error(module, "the module has no mesh: specify one")
        insert(MeshOp(_NEW_MESH, wanted), InsertPoint.at_start(module.body.block))
        return _NEW_MESH, wanted
    if len(meshes) > 1:
        described = "; ".join(_with_axes(*each) for each in meshes.items())
        raise error(module, f"the module has {len(meshes)} meshes, but only one is supported: {described}")
    ((name, present),) = meshes.items()
    if wanted is not None and wanted != present:
        raise error(module, f"the module already has a mesh, {_with_axes(name, present)}: omit the other one")
    return name, present


def _with_axes(name: str, mesh: Mesh) -> str:
    return f"@{name} with {', '.join(f'{axis}={size}' for axis, size in mesh.axes)}"


def _warn_of_unusable_axes(
    module: ModuleOp, mesh: Mesh, choices: Sequence[Choice], of_results: Sequence[Choice]
) -> None:
    """Warn about axes that divide no dimension; devices along them repeat the same computation."""
    if not choices:
        return
    main = main_function(module)
    largest = max(choices, key=lambda choice: max(choice.shape))
    name, size = argument_names(main)[largest.arguments[0]], max(largest.shape)
    used = {ref.name for choice in (*choices, *of_results) for option in choice.options for ref in option.axes()}
    for axis, devices in mesh.axes:
        if axis not in used:
            problem = f"axis '{axis}' of size {devices} cannot shard any tensor, since it divides no dimension"
            warn(main, f"{problem}; the largest dimension is {size}, of {name}")


def prepared(module: ModuleOp) -> ModuleOp:
    """Return a copy of `module` with calls inlined and the passes before propagation applied."""
    copy = clone(module)
    number_operations(copy)
    with capture():
        prepare(copy)
        inline_calls(copy)
        run_passes(copy, PropagationPipeline().passes_before_propagation(copy))
    return copy


def _rows(
    module: ModuleOp, choices: Sequence[Choice], of_results: Sequence[Choice], best: Candidate, search: Search
) -> Sequence[Row]:
    """Return the chosen shardings with their runners-up: of all arguments, and of the results that got a sharding."""
    main = main_function(module)
    names = argument_names(main)
    shardings = search.shardings(best.assignment)
    choosable = choosable_results(module)
    rows: list[Row] = []
    for choice in [*choices, *(each for each in of_results if each.node in best.assignment)]:
        runner_up = search.runner_up(choice, best)
        alternative = None if runner_up is None else search.final(choice, runner_up)
        more = None if runner_up is None else _difference(runner_up.cost, best.cost)
        if choice.origins:
            results = [choosable[number] for number in choice.origins]
            result_names, type_ = tuple(map(_name_of_result, results)), str(results[0].type)
            rows.append(Row((), result_names, type_, search.final(choice, best), alternative, more))
            continue
        arguments: dict[TensorSharding, list[int]] = defaultdict(list)
        for node, indices in choice.nodes.items():
            arguments[choice.final(shardings[node], best.assignment.get(choice.node))] += indices
        for sharding, indices in arguments.items():
            indices.sort()
            argument_group, type_ = tuple([names[index] for index in indices]), str(main.args[indices[0]].type)
            rows.append(Row(tuple(indices), argument_group, type_, sharding, alternative, more))
    return rows


def _difference(cost: StepCost, best: StepCost) -> Difference:
    return Difference(cost.seconds - best.seconds, cost.received - best.received, cost.memory - best.memory)


def _name_of_result(result: OpResult) -> str:
    """Format a result as `stablehlo.add at model.py:3:5`."""
    place = location_of(result)
    return f"{result.op.name} at {place}" if place else result.op.name
