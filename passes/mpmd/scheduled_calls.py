"""The order of a schedule for the fragments of a partitioned MPMD program.

Shardy's compiler leaves the calls of fragments in the order of the microbatches. `schedule_calls` moves them into the
order of a schedule of `schedules.py`. Each call is a unit of it, by its stage, its phase and its position among equal
ones:

    fragment_call origin=["stage0"]      @f0    0F0
    fragment_call origin=["stage1"]      @f1    1F0
    fragment_call origin=["stage1"(1)]   @b1    1B0
    fragment_call origin=["stage0"(1)]   @b0    0B0
    fragment_call origin=["stage0"]      @f0    0F1
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.ir.editing import reorder
from sdy.ir.walking import operations_in_block
from sdy.mpmd import FragmentCallOp
from sdy.passes.common.call_graph import functions
from sdy.passes.common.donations import is_donated
from sdy.passes.mpmd.programs import entry_point
from sdy.passes.mpmd.schedules import Phase, Schedule, Unit
from sdy.passes.mpmd.simulation import StageCost, simulate

_NAME = "stage"
_STAGE = re.compile(rf"{_NAME}(\d+)")
_COST = StageCost(forward=1, backward=2)
"""The assumed cost of all stages, which orders calls on different meshes."""
_AT_ONCE = -1


def stage_name(stage: int) -> str:
    """Return the name of the computations of a stage."""
    return f"{_NAME}{stage}"


def stage_of(name: str) -> int | None:
    """Return the stage whose computations have a name, or None if it is not the name of a stage."""
    match = _STAGE.fullmatch(name)
    return None if match is None else int(match[1])


def schedule_calls(module: ModuleOp, order: Schedule) -> None:
    """Move the operations of the entry point so that each mesh calls the fragments in the order of a schedule.

    Transfers and fragments outside of stages come as soon as their operands are there. A call whose operands come later
    than its turn waits for them, and one that donates an operand for all earlier readers of it.
    """
    block = entry_point(module).body.block
    *ops, returned = operations_in_block(block)
    turns, units = _turns(order), _units(ops, order)
    ranks = {op: (turns.get(units.get(op), _AT_ONCE), position) for position, op in enumerate(ops)}
    waits_for = _predecessors(ops, {function.sym_name.data: function for function in functions(module)})
    followers: defaultdict[Operation, list[Operation]] = defaultdict(list)
    for op, earlier in waits_for.items():
        for each in earlier:
            followers[each].append(op)
    ready = [rank for op, rank in ranks.items() if not waits_for[op]]
    heapify(ready)
    ordered: list[Operation] = []
    while ready:
        op = ops[heappop(ready)[1]]
        ordered.append(op)
        for each in followers[op]:
            waits_for[each].remove(op)
            if not waits_for[each]:
                heappush(ready, ranks[each])
    reorder(block, [*ordered, returned])


def _predecessors(ops: Sequence[Operation], callees: Mapping[str, FuncOp]) -> dict[Operation, set[Operation]]:
    """Return the operations before which each one must not come."""
    predecessors: dict[Operation, set[Operation]] = {}
    for op in ops:
        earlier = {operand.owner for operand in op.operands if isinstance(operand.owner, Operation)}
        if isinstance(op, FragmentCallOp):
            callee = callees[op.callee.string_value()]
            for index, operand in enumerate(op.operands):
                if is_donated(callee, index):
                    earlier |= {use.operation for use in operand.uses} & predecessors.keys()
        predecessors[op] = earlier
    return predecessors


def _turns(order: Schedule) -> dict[Unit | None, int]:
    """Return the position of each unit among those of all devices, by the time of its start."""
    rows = simulate(order, [_COST] * order.stages).devices.rows
    starts = {
        unit: (each.start, device)
        for device, units in enumerate(order.devices)
        for unit, each in zip(units, rows[device], strict=True)
    }
    return {unit: turn for turn, unit in enumerate(sorted(starts, key=lambda unit: starts[unit]))}


def _units(ops: Sequence[Operation], order: Schedule) -> dict[Operation, Unit]:
    """Return the unit of each call of a fragment of a stage.

    A stage with two backwards for each microbatch computes first the gradient of its input, then those of its weights.
    """
    calls: dict[tuple[int, bool], list[Operation]] = {}
    for op in ops:
        if isinstance(op, FragmentCallOp) and op.origin.data:
            origin = max((each.data for each in op.origin), key=lambda each: each.transpose_count)
            stage = stage_of(origin.name)
            if stage is not None:
                calls.setdefault((stage, origin.transpose_count > 0), []).append(op)
    units: dict[Operation, Unit] = {}
    for (stage, is_backward), equal in calls.items():
        phases = [Phase.FORWARD]
        if is_backward:
            is_split = len(equal) == 2 * order.microbatches
            phases = [Phase.INPUT, Phase.WEIGHTS][: 1 + is_split] if order.splits_backwards else [Phase.BACKWARD]
        for position, op in enumerate(equal):
            microbatch, part = divmod(position, len(phases))
            units[op] = Unit(phases[part], stage, microbatch)
    return units
