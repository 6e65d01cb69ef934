"""What the reshards around an operation cost, for a choice of the shardings of its operands and results.

Reshards that follow each other count as one: from what an operand was before the first to what a result is behind the
last.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from sdy.dialect.collectives import AllReduceOp
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank, shape
from sdy.passes.common.loops import Invariants, loop_trips, loops_around
from sdy.passes.spmd.reshards.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshards.collective_cost import elements_received
from sdy.sharding import TensorSharding
from sdy.stablehlo.control_flow import WhileOp


def elements_around(op: Operation, shardings: Sequence[TensorSharding | None]) -> int:
    """The elements that all devices receive in reshards where operands, then results, of `op` have `shardings`."""
    return sum(_elements_before(op, shardings).values()) + _elements_behind(op, shardings)


def elements_over_iterations(op: Operation, shardings: Sequence[TensorSharding | None]) -> int:
    """As `elements_around`, where what is in loops counts as often as these are known to run.

    Loop-invariant operands are resharded before the loop, as `sdy-hoist-invariant-collectives` moves them there.
    """
    before = _elements_before(op, shardings)
    in_front = sum(iterations_of_operand(op, value) * received for value, received in before.items() if received)
    return in_front + iterations(op) * _elements_behind(op, shardings)


def _elements_before(op: Operation, shardings: Sequence[TensorSharding | None]) -> dict[SSAValue, int]:
    """What is received in reshards of each operand."""
    received: dict[SSAValue, int] = defaultdict(int)
    for value, sharding in set(zip(op.operands, shardings, strict=False)):
        received[value] += elements_resharded(value, get_sharding(_before_reshards(value)), sharding, op)
    return received


def _elements_behind(op: Operation, shardings: Sequence[TensorSharding | None]) -> int:
    """What is received in reshards of the results."""
    results = zip(op.results, shardings[len(op.operands) :], strict=True)
    return sum(elements_behind(value, sharding) for value, sharding in results)


def iterations(op: Operation) -> int:
    """How often `op` runs: the product of the trip counts of the loops around it, 1 for those that are not known."""
    return math.prod(map(_trip_count, loops_around(op)))


def iterations_of_operand(op: Operation, value: SSAValue) -> int:
    """How many values `value`, which `op` uses, has in all: as `iterations`, without loops in which it is invariant."""
    loops = list(loops_around(op))
    while loops:
        invariants = Invariants(loops[0])
        if invariants.made_by([value]) is None:
            break
        value = invariants.begins.get(value, value)
        loops.pop(0)
    return math.prod(map(_trip_count, loops))


def _trip_count(loop: WhileOp) -> int:
    known = loop_trips(loop)
    return 1 if known is None else known


def elements_behind(value: OpResult, sharding: TensorSharding | None) -> int:
    """The elements that all devices receive in reshards of `value`, an operation's result, if it has `sharding`."""
    return sum(elements_resharded(value, sharding, target, value.op) for target in dict.fromkeys(_targets(value)))


def elements_resharded(
    value: SSAValue, source: TensorSharding | None, target: TensorSharding | None, anchor: Operation
) -> int:
    """The elements that all devices receive where `value` goes from one sharding to another.

    A value without a sharding is whole on each device; so counts one that is on a single device.
    """
    over_devices = [sharding for sharding in (source, target) if sharding is not None and sharding.dims]
    if not over_devices:
        return 0
    whole = ((),) * rank(value.type)
    before, after = (sharding.dim_axes if sharding in over_devices else whole for sharding in (source, target))
    sizes, mesh = shape(value.type), mesh_of(over_devices[0], anchor)
    return elements_received(cheapest_plan(before, after, sizes, mesh), before, sizes, mesh)


def _before_reshards(value: SSAValue) -> SSAValue:
    """What `value` is resharded from, by reshards whose result nothing else uses.

    A reshard of an all-reduce is not one of them: both become one reduce-scatter.
    """
    while isinstance(reshard := value.owner, ReshardOp) and value.has_one_use():
        if isinstance(reshard.input.owner, AllReduceOp):
            break
        value = reshard.input
    return value


def _targets(value: SSAValue) -> Iterator[TensorSharding | None]:
    """The shardings in which `value` is used."""
    for use in value.uses:
        yield use.operation.sharding.data if isinstance(use.operation, ReshardOp) else get_sharding(value)
