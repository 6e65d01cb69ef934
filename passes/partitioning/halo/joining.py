"""Tensors put together along a split dimension, such as slices in a rotation: rows move by distances that are known.

Each device gets of every tensor what falls into its part of the result, and takes each row from the tensor it is of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from sdy.dialect.shardings import get_sharding
from sdy.passes.exporting.collective_cost import local_elements
from sdy.passes.exporting.operation_plan import Tensors, plan_operation
from sdy.passes.exporting.reshard_cost import elements_around
from sdy.passes.partitioning.halo.body import Body
from sdy.passes.partitioning.halo.exchange import DimExchange, Filler
from sdy.passes.partitioning.halo.reach import Exchange, Reach
from sdy.passes.partitioning.halo.resolution import Resolution, cut_off, filled_up, layout_of, zero_filler
from sdy.passes.partitioning.layout import Layout
from sdy.passes.partitioning.parts import shape_of
from sdy.rule import FactorKind
from sdy.rules import sharding_rule
from sdy.rules.shape import concatenation_kind
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.shape import ConcatenateOp
from sdy.stablehlo.slicing import SliceOp

_MOST_SENT = 2
"""As many times its part of the result a device may receive, all of which it has to hold at once."""


@dataclass(frozen=True)
class _Input:
    """An input of a concatenation: `size` rows of `source` from `start` on, that are at `place` in the result."""

    source: SSAValue
    start: int
    size: int
    place: int

    def reach(self, dim: int, result: Layout) -> Reach:
        """What each part of the result needs of the source."""
        parts, rows, size = result.parts(dim), layout_of(self.source).shape[dim], result.shape[dim]
        shard = -(-size // parts)
        begins = [part * shard for part in range(parts)]
        matters = tuple(
            range(max(0, self.place - begin), max(0, min(shard, self.place + self.size - begin))) for begin in begins
        )
        starts = tuple(begin - self.place + self.start for begin in begins)
        return Reach(rows, -(-rows // parts), starts, matters, shard)


def resolve_concatenation(op: ConcatenateOp, resolution: Resolution) -> bool:
    """Exchange rows of what the inputs are slices of; what only made the slices is removed."""
    dim, result = op.dimension.value.data, layout_of(op.result)
    if not result.axes[dim]:
        return True
    inputs = _inputs(op, dim)
    if 0 in result.shape or any(layout_of(each.source).axes != result.axes for each in inputs):
        return False
    if any(layout_of(each.source).mesh != result.mesh for each in inputs):
        return False
    exchanges = {each: resolution.plan(each.reach(dim, result)) for each in inputs}
    pay = _pay_instead_of_reshards if resolution.least_communication and is_no_shift(op) else _pay_instead_of_wholes
    if not all(exchange.pays for exchange in exchanges.values()) or not pay(op, exchanges):
        return False
    slices = [value.owner for value in op.operands if isinstance(value.owner, SliceOp)]
    _join(op, dim, result, exchanges, resolution)
    for each in dict.fromkeys(slices):
        if not each.result.uses:
            Rewriter.erase_op(each)
    return True


def is_no_shift(op: ConcatenateOp) -> bool:
    """Whether other tensors are joined than slices, so that the operation can as well be split along others only."""
    return concatenation_kind(op) is FactorKind.NEED_REPLICATION


def split_otherwise(op: ConcatenateOp) -> Sequence[TensorSharding | None]:
    """Shardings, of operands and then of the result, with which each device joins its parts; None is the one it has."""
    result, rule, values = layout_of(op.result), sharding_rule(op), (*op.operands, op.result)
    assert result.sharding is not None
    assert rule is not None
    tensors = Tensors(rule, tuple(map(get_sharding, values)), tuple(math.prod(shape_of(value)) for value in values))
    name = result.sharding.mesh
    return plan_operation(tensors, name, {name: result.mesh}, reshapes=False).shardings


def _pay_instead_of_wholes(op: ConcatenateOp, exchanges: dict[_Input, Exchange]) -> bool:
    """Whether devices receive no more in all exchanges than if each of them had the sources whole."""
    sources = {each.source: exchange.reach for each, exchange in exchanges.items()}
    whole = sum((reach.parts - 1) * reach.shard for reach in sources.values())
    return sum(exchange.sent for exchange in exchanges.values()) <= whole


def _pay_instead_of_reshards(op: ConcatenateOp, exchanges: dict[_Input, Exchange]) -> bool:
    """Whether devices receive no more in all exchanges than where tensors are split otherwise, nor hold much more."""
    result, given = layout_of(op.result), [get_sharding(value) for value in (*op.operands, op.result)]
    others = [new or old for new, old in zip(split_otherwise(op), given, strict=True)]
    length = next(iter(exchanges.values())).reach.length
    row = local_elements(result.axes, result.shape, result.mesh) // length
    moved = sum(exchange.received for exchange in exchanges.values()) * row * result.mesh.size
    moved //= result.parts(op.dimension.value.data)
    sent = sum(exchange.sent for exchange in exchanges.values())
    return sent <= _MOST_SENT * length and moved + elements_around(op, given) <= elements_around(op, others)


def _inputs(op: ConcatenateOp, dim: int) -> list[_Input]:
    inputs: list[_Input] = []
    place = 0
    for value in op.operands:
        size = shape_of(value)[dim]
        source, start = _sliced(value, dim)
        inputs.append(_Input(source, start, size, place))
        place += size
    return inputs


def _sliced(value: SSAValue, dim: int) -> tuple[SSAValue, int]:
    """What `value` is a run of rows of, and where in it they begin."""
    if not isinstance(value.owner, SliceOp):
        return value, 0
    whole = zip(value.owner.ranges(), shape_of(value.owner.operand), strict=True)
    others = [(each, size) for number, (each, size) in enumerate(whole) if number != dim]
    start, _, stride = value.owner.ranges()[dim]
    if stride != 1 or any(each != (0, size, 1) for each, size in others):
        return value, 0
    return value.owner.operand, start


def _join(
    op: ConcatenateOp, dim: int, result: Layout, exchanges: dict[_Input, Exchange], resolution: Resolution
) -> None:
    sharding = result.sharding
    assert sharding is not None
    filler = zero_filler(op, op.operands[0])
    sources = list(dict.fromkeys(each.source for each in exchanges))
    filled = [(filled_up(op, source, layout_of(source).padded_shape, filler, sharding), sharding) for source in sources]
    names = {axis.name for axes in result.axes for axis in axes}
    scalar = TensorSharding.replicated_open(sharding.mesh, 0)
    body = Body(op, [*filled, (filler.value, scalar)], names, resolution.devices(result.mesh))
    *parts, inner_filler = body.arguments
    own = dict(zip(sources, parts, strict=True))
    places: SSAValue | None = None
    joined: SSAValue | None = None
    for each, exchange in exchanges.items():
        value = DimExchange(body, sharding, dim, Filler(inner_filler, is_zero=True)).run(own[each.source], exchange)
        if joined is None:
            joined = value
            continue
        length = exchange.reach.length
        begins = [part * length for part in range(exchange.reach.parts)]
        places = places or body.places(sharding.dims[dim].axes, begins, length)
        bound = body.scalars.integers([each.place], (length,))
        is_before = body.scalars.compare(ComparisonDirection.LT, places, bound)
        emit = body.tensors(sharding)
        joined = emit.select(emit.broadcast(is_before, (dim,), shape_of(value)), joined, value)
    assert joined is not None
    [outside] = body.finish([joined], [result.padded_type()], [sharding])
    Rewriter.replace_op(op, [], [cut_off(op, outside, result.shape, sharding)])
