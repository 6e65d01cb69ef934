"""Communication cost of the reshards around an operation, given the shardings of its operands and results.

A chain of reshards counts as one, from the sharding before the first to the sharding after the last.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from xdsl.dialects import func
from xdsl.ir import Operation, OpResult, SSAValue

from sdy.dialect.collectives import AllReduceOp
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, rank, shape
from sdy.mesh import Mesh
from sdy.passes.common.loops import LoopInvariants, loop_trips, loops_around
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_steps import AxesPerDim
from sdy.passes.spmd.reshard.searched_plan import least_elements
from sdy.sharding import TensorSharding
from sdy.stablehlo.control_flow import WhileOp


def elements_around(op: Operation, shardings: Sequence[TensorSharding | None]) -> int:
    """Return the elements that all devices receive in reshards around `op`.

    Args:
        op: The operation.
        shardings: The shardings of its operands, then of its results, in which it runs.
    """
    results = zip(op.results, shardings[len(op.operands) :], strict=True)
    behind = sum(elements_behind(value, sharding) for value, sharding in results)
    return sum(_elements_before(op, shardings).values()) + behind


def _elements_before(op: Operation, shardings: Sequence[TensorSharding | None]) -> dict[SSAValue, int]:
    """Return the elements that all devices receive in the reshards of each operand."""
    received: dict[SSAValue, int] = defaultdict(int)
    for value, sharding in set(zip(op.operands, shardings, strict=False)):
        received[value] += elements_resharded(value, get_sharding(before_reshards(value)), sharding, op)
    return received


def iterations(op: Operation) -> int:
    """Return how often `op` runs: the product of the trip counts of the enclosing loops, 1 for each unknown one."""
    return math.prod(map(_trip_count, loops_around(op)))


def iterations_of_operand(op: Operation, value: SSAValue) -> int:
    """Return how often `value`, an operand of `op`, is resharded: `iterations` without the loops that can hoist it."""
    loops = list(loops_around(op))
    while loops:
        invariants = LoopInvariants(loops[0])
        if invariants.producers([value]) is None:
            break
        value = invariants.initial_values.get(value, value)
        loops.pop(0)
    return math.prod(map(_trip_count, loops))


def _trip_count(loop: WhileOp) -> int:
    known = loop_trips(loop)
    return 1 if known is None else known


def elements_behind(value: OpResult, sharding: TensorSharding | None) -> int:
    """Return the elements that all devices receive in reshards of `value` for its users, if it has `sharding`."""
    wanted = dict.fromkeys(shardings_of_uses(value))
    return sum(elements_resharded(value, sharding, target, value.op) for target in wanted)


def least_elements_behind(value: OpResult, sharding: TensorSharding | None) -> int:
    """Return a lower bound of `elements_behind` in much less time."""
    wanted = dict.fromkeys(shardings_of_uses(value))
    return sum(least_elements_resharded(value, sharding, target, value.op) for target in wanted)


def elements_resharded(
    value: SSAValue, source: TensorSharding | None, target: TensorSharding | None, anchor: Operation
) -> int:
    """Return the elements that all devices receive in a reshard of `value` from `source` to `target`.

    A value without a sharding, or on a single device, counts as replicated.
    """
    reshard = _reshard(value, source, target, anchor)
    if reshard is None:
        return 0
    before, _, sizes, mesh = reshard
    return elements_received(cheapest_plan(*reshard), before, sizes, mesh)


def least_elements_resharded(
    value: SSAValue, source: TensorSharding | None, target: TensorSharding | None, anchor: Operation
) -> int:
    """Return a lower bound of `elements_resharded` in much less time: the elements that devices do not hold."""
    reshard = _reshard(value, source, target, anchor)
    return 0 if reshard is None else least_elements(*reshard)


def _reshard(
    value: SSAValue, source: TensorSharding | None, target: TensorSharding | None, anchor: Operation
) -> tuple[AxesPerDim, AxesPerDim, tuple[int, ...], Mesh] | None:
    """Return the axes of each dimension before and after a reshard, the sizes and the mesh; None without shardings."""
    over_devices = [sharding for sharding in (source, target) if sharding is not None and sharding.dims]
    if not over_devices:
        return None
    replicated = ((),) * rank(value.type)
    before, after = (sharding.dim_axes if sharding in over_devices else replicated for sharding in (source, target))
    return before, after, shape(value.type), mesh_of(over_devices[0], anchor)


def before_reshards(value: SSAValue) -> SSAValue:
    """Return the input of the chain of reshards, each with one use, that ends at `value`.

    The chain does not include a reshard of an all-reduce, because both become one reduce-scatter.
    """
    while isinstance(reshard := value.owner, ReshardOp) and value.has_one_use():
        if isinstance(reshard.input.owner, AllReduceOp):
            break
        value = reshard.input
    return value


def is_on_all_devices(value: SSAValue) -> bool:
    """Return whether `value` is replicated, other than by an all-reduce, which becomes a reduce-scatter if sliced."""
    sharding = get_sharding(value)
    if sharding is None or isinstance(value.owner, AllReduceOp):
        return sharding is None
    # A single-device sharding has no dimensions.
    return bool(sharding.dims) and sharding.is_fully_replicated and not sharding.unreduced


def shardings_of_copies(value: SSAValue, anchor: Operation) -> Iterator[TensorSharding]:
    """Yield the shardings to which other reshards in the block of `anchor` convert `value`.

    `anchor` can slice or reshard their results instead of `value`. Reshards that only `anchor` uses do not count.
    """
    for use in value.uses:
        reshard = use.operation
        if isinstance(reshard, ReshardOp) and reshard.parent is anchor.parent and not _feeds_only(reshard, anchor):
            yield reshard.sharding.data


def is_substitute(copy: TensorSharding, source: TensorSharding) -> bool:
    """Return whether a value with the sharding `source` may be resharded from a copy with the sharding `copy`."""
    return copy.mesh == source.mesh and not copy.unreduced and not source.unreduced


def _feeds_only(reshard: ReshardOp, op: Operation) -> bool:
    user = reshard.result.get_user_of_unique_use()
    return user is op or (isinstance(user, ReshardOp) and _feeds_only(user, op))


def shardings_of_uses(value: SSAValue) -> Iterator[TensorSharding | None]:
    """Yield the sharding that each use of `value` needs.

    It is the sharding of a reshard, of a function result, or of all other tensors of an elementwise operation, if they
    are sharded alike; otherwise that of the value.
    """
    for use in value.uses:
        match use.operation:
            case ReshardOp() as reshard:
                yield reshard.sharding.data
            case func.ReturnOp() as terminator if isinstance(function := terminator.parent_op(), func.FuncOp):
                yield func_result_sharding(function, use.index)
            case user:
                yield _sharding_of_elementwise(user, value) or get_sharding(value)


def _sharding_of_elementwise(op: Operation, operand: SSAValue) -> TensorSharding | None:
    """Return the sharding of all tensors of an elementwise operation but `operand`, or None if they have several."""
    if not has_trait(op, Elementwise) or op.regions:
        return None
    others = [value for value in (*op.operands, *op.results) if value is not operand and not is_scalar(value)]
    shardings = set(map(get_sharding, others))
    return shardings.pop() if len(shardings) == 1 else None
