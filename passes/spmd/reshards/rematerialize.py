"""What every device can make for itself: constants, iotas, and what elementwise operations make of these."""

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.interfaces import Elementwise
from sdy.dialect.ops import ConstantOp as ShardedConstantOp
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import set_sharding
from sdy.ir.editing import insert
from sdy.ir.shapes import is_scalar
from sdy.ir.traits import has_trait
from sdy.sharding import TensorSharding
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp, IotaOp

_MADE_OF_NOTHING = (ConstantOp, IotaOp, ShardedConstantOp)


def rematerialize(value: SSAValue, sharding: TensorSharding, at: InsertPoint) -> SSAValue | None:
    """`value` computed once more, split as `sharding` says; None where that takes more than each device has."""
    ops = _ops_behind(value)
    if ops is None:
        return None
    made: dict[SSAValue, SSAValue] = {}
    for op in ops:
        copy = op.clone(value_mapper=made)
        insert(copy, at)
        set_sharding(copy.results[0], sharding)
        made[op.results[0]] = copy.results[0]
    return made[value]


def _ops_behind(value: SSAValue) -> list[Operation] | None:
    """The operations that `value` is made by, each after those that it uses; None if it is made of anything else.

    Scalars, which each device has, are not made again.
    """
    ordered: dict[SSAValue, Operation] = {}
    pending = [value]
    while pending:
        current = pending[-1]
        op = current.owner
        if not isinstance(op, Operation) or not _makes_or_maps(op):
            return None
        missing = [operand for operand in op.operands if operand not in ordered and not is_scalar(operand)]
        pending += reversed(missing)
        if not missing:
            pending.pop()
            ordered[current] = op
    return list(ordered.values())


def _makes_or_maps(op: Operation) -> bool:
    if len(op.results) != 1 or op.regions:
        return False
    broadcasts_scalar = isinstance(op, BroadcastInDimOp) and is_scalar(op.operand)
    is_mapped = has_trait(op, Elementwise) and not isinstance(op, ReshardOp)
    return broadcasts_scalar or is_mapped or isinstance(op, _MADE_OF_NOTHING)
