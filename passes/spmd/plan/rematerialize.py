"""Rematerialization instead of resharding: recompute a value in another layout from operands cheaper to reshard.

Constants and iotas are free on every device, as are elementwise operations on slices of a replicated tensor. A value
that is cast to a wider type is resharded before the cast, which sends a quarter of the bytes in

    %0 = stablehlo.convert %arg0 : (tensor<8xi8>) -> tensor<8xf32>
    %1 = sdy.reshard %0 <@mesh, [{}]> : tensor<8xf32>
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.dialect.collectives import AllSliceOp
from sdy.dialect.interfaces import Elementwise
from sdy.dialect.meshes import mesh_of
from sdy.dialect.ops import ConstantOp as ShardedConstantOp
from sdy.dialect.ops import PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.dialect.shardings import get_sharding, set_sharding
from sdy.ir.editing import insert
from sdy.ir.fast_access import has_trait
from sdy.ir.shapes import is_scalar, num_elements, shape_of
from sdy.passes.common.properties import num_bytes
from sdy.passes.common.reshard_reuse import layout_before
from sdy.passes.spmd.plan.reshard_cost import (
    elements_resharded,
    is_on_all_devices,
    is_substitute,
    least_elements_resharded,
    shardings_of_copies,
)
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.constants import ConstantOp, IotaOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp

_MOST_OPERATIONS = 64
"""Limit on the length of a chain of rematerialized operations."""

_LEAVES = (ConstantOp, IotaOp, ShardedConstantOp)

_LAYOUT_OPS = (PropagationBarrierOp, ReshardOp, ShardingConstraintOp)

Reshard = Callable[[SSAValue, TensorSharding], SSAValue]

Copies = Callable[[SSAValue], Iterable[TensorSharding]]
"""Returns the shardings to which reshards of the block convert a value, apart from its own sharding."""


def rematerialize(reshard: ReshardOp, reshard_operand: Reshard, copies: Copies) -> SSAValue | None:
    """Rematerialize the input of a reshard in its target layout, if that receives fewer bytes than the reshard.

    Args:
        reshard: The reshard of a value without partial sums. The new operations are inserted before it.
        reshard_operand: Function that reshards an operand of the rematerialized chain to a layout.
        copies: Function that returns the layouts to which collectives of the block have resharded a value already.

    Returns:
        The value in the layout of `reshard`, or None if resharding it is cheapest.
    """
    recipe = _RecipeSearch(reshard, copies).cheapest(reshard.input, reshard.sharding.data, _MOST_OPERATIONS)
    if recipe.op_to_copy is None and recipe.value is reshard.input:
        return None
    return _build(recipe, InsertPoint.before(reshard), reshard_operand, {})


def bytes_received(value: SSAValue, sharding: TensorSharding, anchor: Operation) -> float:
    """Return the bytes that all devices receive to reshard `value`, an operand of `anchor`, or rematerialize it."""
    copies = partial(shardings_of_copies, anchor=anchor)
    return _RecipeSearch(anchor, copies, counts_only=True).cheapest(value, sharding, _MOST_OPERATIONS).received


def least_bytes_received(value: SSAValue, sharding: TensorSharding, anchor: Operation) -> float:
    """Return a lower bound of `bytes_received` in much less time: 0 for values with other users or an operation."""
    count = num_elements(value)
    if isinstance(value.owner, Operation) or not value.has_one_use() or not count:
        return 0.0
    return least_elements_resharded(value, get_sharding(value), sharding, anchor) * num_bytes(value.type) / count


@dataclass(frozen=True)
class _Leaf:
    """Reshard at the beginning of a rematerialized chain, with the bytes that all devices receive."""

    value: SSAValue
    sharding: TensorSharding
    received: float


@dataclass(frozen=True)
class _Recipe:
    """Recipe for `value` in the layout `sharding`: a copy of its defining operation, or a reshard.

    Attributes:
        value: The value.
        sharding: The layout.
        leaves: All reshards in the recipe; a reshard with several users counts once.
        op_to_copy: The operation to copy, or None to reshard `value`.
        operands: The operands of that operation, each with the recipe of the value that the copy has instead.
    """

    value: SSAValue
    sharding: TensorSharding
    leaves: frozenset[_Leaf]
    op_to_copy: Operation | None = None
    operands: Sequence[tuple[SSAValue, "_Recipe"]] = ()

    @property
    def received(self) -> float:
        """The bytes that all devices receive."""
        return _received(self.leaves)


def _received(leaves: Iterable[_Leaf]) -> float:
    return sum([leaf.received for leaf in leaves])


class _RecipeSearch:
    """Memoized search for the cheapest recipe of a value in a layout.

    Args:
        anchor: The operation that needs the value.
        copies: Function that returns the layouts to which a value has been resharded already.
        counts_only: Whether only the bytes of the recipe matter, so that a reshard without bytes ends the search.
    """

    def __init__(self, anchor: Operation, copies: Copies, *, counts_only: bool = False):
        self._anchor = anchor
        self._copies = copies
        self._counts_only = counts_only
        self._known: dict[tuple[SSAValue, TensorSharding], _Recipe] = {}

    def cheapest(self, value: SSAValue, sharding: TensorSharding, most_operations: int) -> _Recipe:
        """Return the recipe that receives the fewest bytes; on a tie, a reshard, unless the recipe has no reshards."""
        key = value, sharding
        if key not in self._known:
            leaf = _Leaf(value, sharding, self._bytes_resharded(value, sharding))
            direct = _Recipe(value, sharding, frozenset(() if is_scalar(value) else [leaf]))
            is_found = self._counts_only and not direct.received
            computed = None if is_found else self._by_defining_op(value, sharding, most_operations, direct.received)
            is_cheaper = computed is not None and (computed.received < direct.received or not computed.leaves)
            self._known[key] = computed if computed is not None and is_cheaper else direct
        return self._known[key]

    def _by_defining_op(
        self, value: SSAValue, sharding: TensorSharding, most_operations: int, limit: float
    ) -> _Recipe | None:
        """Return the recipe that copies the operation of a value, if it exists and receives less than `limit` bytes.

        A recipe without reshards is returned whatever the limit.

        Operands that no copy computes come first: one whose reshard reaches the limit excludes the recipe, before the
        search goes up the chain of additions that leads through the layers of a model.
        """
        op = value.owner
        if not isinstance(op, Operation) or not most_operations:
            return None
        if isinstance(op, AllSliceOp | ReshardOp) and is_on_all_devices(op.operands[0]):
            return self.cheapest(op.operands[0], sharding, most_operations - 1)
        layouts = _operand_layouts(op, sharding)
        if layouts is None:
            return None
        recipes: dict[SSAValue, _Recipe] = {}
        leaves = frozenset[_Leaf]()
        for operand, layout in sorted(zip(op.operands, layouts, strict=True), key=_is_elementwise):
            recipes[operand] = self.cheapest(operand, layout, most_operations - 1)
            leaves |= recipes[operand].leaves
            if leaves and _received(leaves) >= limit:
                return None
        return _Recipe(value, sharding, leaves, op, tuple([(each, recipes[each]) for each in op.operands]))

    def _bytes_resharded(self, value: SSAValue, sharding: TensorSharding) -> float:
        source, count = get_sharding(value), num_elements(value)
        if source is not None and source.unreduced:
            return math.inf
        if source is None or source.is_fully_replicated or not count:
            return 0.0
        copies = (copy for copy in self._copies(value) if is_substitute(copy, source))
        received = min(self._elements(value, each, sharding) for each in (source, *copies))
        return received * num_bytes(value.type) / count

    def _elements(self, value: SSAValue, source: TensorSharding, sharding: TensorSharding) -> float:
        if not sharding.is_fully_replicated:
            source_mesh, target_mesh = (mesh_of(each, self._anchor) for each in (source, sharding))
            if source_mesh.axes != target_mesh.axes:
                return math.inf
        return elements_resharded(value, source, sharding, self._anchor)


def _is_elementwise(operand: tuple[SSAValue, TensorSharding]) -> bool:
    owner = operand[0].owner
    return isinstance(owner, Operation) and has_trait(owner, Elementwise)


def _operand_layouts(op: Operation, sharding: TensorSharding) -> Sequence[TensorSharding] | None:
    """Return the operands' layouts for a copy of `op` whose result has `sharding`, or None if `op` is not copied."""
    if len(op.results) != 1 or op.regions:
        return None
    if isinstance(op, _LEAVES):
        return ()
    if isinstance(op, BroadcastInDimOp):
        return (_before_broadcast(op, sharding),)
    if isinstance(op, TransposeOp | ReshapeOp):
        before = layout_before(op, sharding, mesh_of(sharding, op))
        return before and (before,)
    if not has_trait(op, Elementwise) or isinstance(op, _LAYOUT_OPS):
        return None
    result = shape_of(op.results[0])
    if any(not is_scalar(operand) and shape_of(operand) != result for operand in op.operands):
        return None
    scalar = TensorSharding.replicated_closed(sharding.mesh, 0)
    return [scalar if is_scalar(operand) else sharding for operand in op.operands]


def _before_broadcast(op: BroadcastInDimOp, sharding: TensorSharding) -> TensorSharding:
    repeated, sizes = shape_of(op.operand), shape_of(op.result)
    dims = op.broadcast_dimensions.get_values()
    return replace(
        sharding,
        dims=tuple(
            sharding.dims[dim] if size == sizes[dim] else DimSharding(())
            for size, dim in zip(repeated, dims, strict=True)
        ),
    )


def _build(recipe: _Recipe, at: InsertPoint, reshard: Reshard, computed: dict[_Recipe, SSAValue]) -> SSAValue:
    if recipe in computed or (recipe.op_to_copy is None and is_scalar(recipe.value)):
        return computed.get(recipe, recipe.value)
    if recipe.op_to_copy is None:
        computed[recipe] = reshard(recipe.value, recipe.sharding)
        return computed[recipe]
    copy = recipe.op_to_copy.clone({operand: _build(each, at, reshard, computed) for operand, each in recipe.operands})
    insert(copy, at)
    set_sharding(copy.results[0], recipe.sharding)
    computed[recipe] = copy.results[0]
    return computed[recipe]
