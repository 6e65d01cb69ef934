"""Cost of a reshard that several operations share: each pays only for what the others do not save.

    %1 = stablehlo.slice %0 [1:9]    tensor<9xf32> [{}] -> tensor<8xf32> [{"x"}]
    %2 = stablehlo.slice %0 [0:8]    tensor<9xf32> [{}] -> tensor<8xf32> [{"x"}]

If only one slice is considered, resharding its result is cheapest. But both slices can share one reshard of %0, and
exchange rows. Then each saves the reshard of its result, so the first slice is charged for the shared reshard minus
the savings of the second.

    %1 = stablehlo.select %mask, %0, %zeros
    %2 = stablehlo.select %mask, %zeros, %0

share the reshards of %0 and of the mask, which receive fewer bytes than those of both results.

    %1 = stablehlo.pad %0, low = [1], high = [-1]
    %2 = stablehlo.pad %0, low = [2], high = [-2]
    %3 = stablehlo.add %1, %2

share the reshard of %3 if both pads and the sum run in the sharding of %0, so that neither pad is charged for it.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from xdsl.ir import Operation, SSAValue

from sdy.dialect.constants import is_constant
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, shape
from sdy.mesh import Mesh
from sdy.passes.common.properties import element_bytes
from sdy.passes.spmd.plan.exchange_cost import elements_exchanged
from sdy.passes.spmd.plan.reshard_cost import before_reshards, elements_behind, elements_resharded
from sdy.sharding import TensorSharding, equivalent
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.dot import DotGeneralOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.slicing import SliceOp
from sdy.stablehlo.windows import SelectAndScatterOp

_MOST_JOINING = 8
"""Limit on the number of elementwise operations between joined values."""


def charge(received: float, value: SSAValue, sharding: TensorSharding, op: Operation, mesh: Mesh) -> float:
    """Return the share of a reshard of `value` that `op` is charged: its bytes minus the savings of the other users.

    Args:
        received: The bytes that all devices receive in the reshard.
        value: The value that is resharded: an operand of `op`, or the input of a reshard that produces one.
        sharding: The target of the reshard.
        op: One of the users.
        mesh: The mesh of all layouts.
    """
    while isinstance(maker := value.owner, Operation) and (operand := _variable(maker)) is not None:
        value = operand
    source = get_sharding(value)
    if source is None:
        return received
    for user, operand in _users(value):
        if user is not op and user.parent is op.parent:
            received -= _saved(user, operand, source, sharding, received, mesh)
        if received <= 0:
            return 0.0
    return received


def _users(value: SSAValue) -> Iterator[tuple[Operation, SSAValue]]:
    """Yield the users of `value` and the operands they use, looking through reshards and elementwise operations.

    An elementwise operation is looked through if its other operands are constants.
    """
    for use in value.uses:
        user = use.operation
        if isinstance(user, ReshardOp):
            if (behind := user.result.get_user_of_unique_use()) is not None:
                yield behind, user.result
        elif _variable(user) is value:
            yield from _users(user.results[0])
        else:
            yield user, value


def num_sharing(op: Operation, operand: SSAValue) -> int:
    """Return the number of operations, `op` included, that can share the reshard of `operand` if all do alike.

    They are elementwise operations with the same operands, apart from constants, and results of the same sharding, or
    matrix products of `operand` with others of one shape and sharding, such as those for queries, keys and values.
    """
    if isinstance(op, DotGeneralOp):
        return _num_products(op, operand)
    variable = variables(op)
    if len(variable) < 2 or not is_elementwise(op):
        return 1
    users = {use.operation for use in next(iter(variable)).uses}
    return 1 + sum(
        user is not op
        and user.parent is op.parent
        and is_elementwise(user)
        and variables(user) == variable
        and get_sharding(user.results[0]) == get_sharding(op.results[0])
        for user in users
    )


def _num_products(op: DotGeneralOp, operand: SSAValue) -> int:
    side, value, form = [*op.operands].index(operand), before_reshards(operand), _form(op)
    products = {user for user, _ in _users(value) if isinstance(user, DotGeneralOp) and user.parent is op.parent}
    alike = {user for user in products if before_reshards(user.operands[side]) is value and _form(user) == form}
    return len(alike | {op})


def _form(op: DotGeneralOp) -> Hashable:
    """Return the dimensions, types and shardings of a product, on which its plan depends."""
    values = (*map(before_reshards, op.operands), op.result)
    return op.dot_dimension_numbers, tuple((value.type, get_sharding(value)) for value in values)


def joins(op: Operation, sharding: TensorSharding | None, mesh: Mesh) -> bool:
    """Return whether to reshard a value that elementwise operations compute instead of each value that they join.

    All joined values are available in `sharding`, and their reshards receive more bytes than that of the result.

    Args:
        op: A slice or a pad that makes one of the values, or an elementwise operation that uses one.
        sharding: The sharding of the joined values.
        mesh: The mesh of all layouts.
    """
    if sharding is None or not (isinstance(op, SliceOp | PadOp) or is_elementwise(op)):
        return False
    joining = op if is_elementwise(op) else op.results[0].get_user_of_unique_use()
    for _ in range(_MOST_JOINING):
        if joining is None or not (values := _available(joining, sharding, _MOST_JOINING)):
            return False
        result = joining.results[0]
        wanted = get_sharding(result)
        if wanted is not None and len(values) > 1:
            together = elements_behind(result, sharding) * element_bytes(result.type)
            together += sum(_exchanged(value, sharding, mesh) for value in values)
            if together < _received_apart(values, sharding, wanted, joining, mesh):
                return True
        joining = result.get_user_of_unique_use()
    return False


def _available(op: Operation, sharding: TensorSharding, most_operations: int) -> set[SSAValue]:
    """Return the values that `op` and the elementwise operations before it join; none unless all are available.

    A value is available in `sharding` if it has this sharding, or is a slice or a pad of one that has it.
    """
    if not is_elementwise(op) or not most_operations:
        return set()
    values = set[SSAValue]()
    for operand in variables(op):
        value = before_reshards(operand)
        maker = value.owner
        source = before_reshards(maker.operands[0]) if isinstance(maker, SliceOp | PadOp) else value
        if equivalent(get_sharding(source), sharding):
            values.add(value)
        elif isinstance(maker, Operation) and (joined := _available(maker, sharding, most_operations - 1)):
            values |= joined
        else:
            return set()
    return values


def _exchanged(value: SSAValue, sharding: TensorSharding, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the slice or the pad that makes `value`, 0 for other values."""
    maker = value.owner
    if not isinstance(maker, SliceOp | PadOp):
        return 0
    return elements_exchanged(maker, sharding.dim_axes, mesh) * element_bytes(value.type)


def _received_apart(
    values: Iterable[SSAValue], sharding: TensorSharding, wanted: TensorSharding, anchor: Operation, mesh: Mesh
) -> float:
    """Return the bytes that all devices receive if each value is resharded to `wanted`, or the source of slices is."""
    resharded, exchanged = defaultdict[SSAValue, float](float), defaultdict[SSAValue, float](float)
    for value in values:
        maker = value.owner
        received = elements_resharded(value, sharding, wanted, anchor) * element_bytes(value.type)
        if isinstance(maker, SliceOp | PadOp):
            value = before_reshards(maker.operands[0])
            exchanged[value] += _exchanged(maker.result, wanted, mesh)
            received += _exchanged(maker.result, sharding, mesh)
        resharded[value] += received
    return sum(
        min(
            received, exchanged[value] + elements_resharded(value, sharding, wanted, anchor) * element_bytes(value.type)
        )
        for value, received in resharded.items()
    )


def variables(op: Operation) -> set[SSAValue]:
    """Return the operands of `op` that are neither constants nor broadcast scalars."""
    return {operand for operand in op.operands if not _is_filled(operand)}


def is_elementwise(op: Operation) -> bool:
    """Return whether `op` is an elementwise operation with one result."""
    return has_trait(op, Elementwise) and len(op.results) == 1 and not op.regions


def _variable(op: Operation) -> SSAValue | None:
    """Return the only non-constant operand of an elementwise operation; None for any other operation."""
    variable = [operand for operand in op.operands if not _is_filled(operand)]
    return variable[0] if is_elementwise(op) and len(variable) == 1 else None


def _is_filled(value: SSAValue) -> bool:
    """Return whether `value` is a constant or a broadcast scalar, which needs no communication."""
    value = before_reshards(value)
    return is_constant(value) or (isinstance(op := value.owner, BroadcastInDimOp) and is_scalar(op.operand))


def _saved(
    op: Operation, operand: SSAValue, source: TensorSharding, target: TensorSharding, received: float, mesh: Mesh
) -> float:
    """Return the bytes that all devices save around `op` if its operand has the layout `target` instead of `source`."""
    wanted = get_sharding(op.results[0]) if len(op.results) == 1 else None
    if wanted is None:
        return 0.0
    if isinstance(op, SliceOp | PadOp) and operand is op.operands[0]:
        here, there = (
            elements_exchanged(op, layout.dim_axes, mesh)
            + (0 if joins(op, layout, mesh) else elements_behind(op.result, layout))
            for layout in (source, target)
        )
        return max(0, here - there) * element_bytes(op.result.type)
    is_wanted = shape(op.results[0].type) == shape(operand.type) and equivalent(wanted, target)
    runs_in_wanted = has_trait(op, Elementwise) or (isinstance(op, SelectAndScatterOp) and operand is op.operand)
    return received if runs_in_wanted and is_wanted and not joins(op, source, mesh) else 0.0
