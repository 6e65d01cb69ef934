"""Choosing how an operation runs where it can run in several ways, each with its own reshards.

*A contraction whose operands disagree.* With the axis "x" of 4 devices, a replicated left operand and a right operand
that is split along the contracted dimension,

    tensor<64x8xf32> [{}, {}] . tensor<8x8xf32> [{"x"}, {}] -> tensor<64x8xf32> [{}, {}]

the left operand can be sliced too and the partial results, of 512 elements each, all-reduced; or the 64 elements of the
right operand are all-gathered, and each device computes the whole product.

*A loop-invariant operand that is needed whole.* Each iteration takes one of the slices

    tensor<6x8x8xf32> [{"x"}, {}, {}] -> tensor<1x8x8xf32> [{}, {}, {}]

The operand can be split along another dimension instead, for which less is sent than to gather it, but then each slice
has to be gathered; or all of it is gathered once, before the loop.

*A dimension that is needed whole.* A Fourier transform needs its last dimension whole, and gives a longer one back:

    tensor<64x64xf32> [{}, {"x"}] -> tensor<64x33xcomplex<f32>> [{}, {}]

The rows can be split instead, by an all-to-all of the operand, and the result gathered, 8 bytes an element; or the
operand is gathered, 4 bytes an element.

*Tensors that are split in different ways*, as `sdy.passes.spmd.reshards.candidate_plans` says.

*A slice at an index that is data, of a split dimension.*

    tensor<64x8xf32> [{"x"}, {}] -> tensor<1x8xf32> [{}, {}]

The operand is gathered; or each device takes what it has of the slice, and these are summed, 8 elements of which all
but one device have zero. `sdy-convert-global-to-local` does the latter where the operand stays split.

*A scatter of split updates.* They are summed, or moved to where the input has the windows that they are written to:

    tensor<8x16xf32> [{}, {"x"}], updates tensor<8x16xf32> [{"x"}, {}] -> tensor<8x16xf32> [{"x"}, {}]
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank, shape
from sdy.mesh import Mesh
from sdy.passes.common.num_bytes import element_bytes
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.spmd.layout import Layout
from sdy.passes.spmd.reshards.candidate_plans import (
    plans_of_exchanged_reshape,
    plans_of_reshape,
    plans_of_tensors,
)
from sdy.passes.spmd.reshards.collective_cost import local_elements
from sdy.passes.spmd.reshards.exchange_cost import elements_exchanged, elements_exchanged_in_reshape
from sdy.passes.spmd.reshards.operation_plan import Meshes, OperationShardings, Tensors, plan_operation, summed_axes
from sdy.passes.spmd.reshards.rematerialize import bytes_received
from sdy.passes.spmd.reshards.reshard_cost import (
    before_reshards,
    elements_behind,
    iterations,
    iterations_of_operand,
)
from sdy.passes.spmd.reshards.shared_reshards import charge
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp

_WORK = 1000
"""The products of elements that a device adds up in about the time in which it receives an element."""

_DOTS = (DotGeneralOp, DotOp)
"""Operations whose layout has most to do with where the work is done."""


def cheapest_operation(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool
) -> OperationShardings:
    """The plan of `plan_operation`, or one that costs less.

    In that one, reduction factors are not split, the axes of factors that must be whole are not moved to others, or the
    layout is one of `candidate_plans`. `tensors` are those of `op`.
    """
    mesh, rule = meshes[mesh_name], tensors.rule
    plan = plan_operation(tensors, mesh_name, meshes, reshapes)
    same_devices = all(other.device_ids == mesh.device_ids for other in meshes.values())
    if isinstance(op, ReshapeOp) and same_devices:
        return _cheapest_reshape(op, tensors, plan, mesh_name, mesh)
    if not any(plan.shardings):
        return plan
    plans = [plan]
    if plan.reduction_axes and summed_axes(tensors, mesh_name, mesh) is None:
        whole_sums = replace(tensors, rule=rule.with_replicated(rule.reduction))
        plans.append(plan_operation(whole_sums, mesh_name, meshes, reshapes))
    if rule.need_replication:
        plans.append(plan_operation(tensors, mesh_name, meshes, reshapes, moves_axes=False))
    if same_devices:
        has_elements = 0 not in (tensors.sizes[0], tensors.sizes[-1])
        permutes = isinstance(op, SliceOp | PadOp) and has_elements
        moves_whole = rule.reduction or rule.need_replication or (rule.permutation and not permutes)
        most = _bytes_held(op, tensors, plan, mesh) if moves_whole else math.inf
        # A convolution is split into no fewer parts to receive less: its work takes most of the time.
        fewest = _num_parts(plan, mesh) if isinstance(op, ConvolutionOp) else 1
        candidates = () if isinstance(op, _DOTS) else plans_of_tensors(tensors, mesh_name, mesh, permutes)
        plans += (
            each
            for each in candidates
            if _bytes_held(op, tensors, each, mesh) <= most and _num_parts(each, mesh) >= fewest
        )
    if isinstance(op, DynamicSliceOp) and (summed := _summed_slice(op, tensors, mesh_name)):
        plans.append(summed)
    alternatives = tuple(dict.fromkeys(plans))
    best = plan if len(alternatives) == 1 else min(alternatives, key=lambda each: _cost(op, tensors, each, mesh))
    return replace(best, reduction_axes=()) if isinstance(op, DynamicSliceOp) else best


def _summed_slice(op: DynamicSliceOp, tensors: Tensors, mesh_name: str | Mesh) -> OperationShardings | None:
    """The plan in which the operand stays as it is and devices sum what they have of the slice.

    Its reduction axes are those of that sum, which is part of the operation.
    """
    operand, *_, result = tensors.shardings
    if operand is None or operand.mesh != mesh_name:
        return None
    sizes = zip(shape(op.operand.type), shape(op.result.type), strict=True)
    sliced = [before != after for before, after in sizes]
    axes = operand.dim_axes
    kept = tuple(DimSharding() if cut else DimSharding(of_dim) for cut, of_dim in zip(sliced, axes, strict=True))
    whole = TensorSharding(operand.mesh, kept)
    summed = tuple(axis for cut, of_dim in zip(sliced, axes, strict=True) if cut for axis in of_dim)
    unchanged = (None,) * len(op.operands)
    return OperationShardings((*unchanged, None if equivalent(whole, result) else whole), axes, summed)


def _cheapest_reshape(
    op: ReshapeOp, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings:
    """Return `plan`, or a plan of the reshape `op` that costs less: with parts of it alone, or with an exchange."""
    if not any(plan.shardings) and not _received_in_reshape(op, tensors.shardings, mesh):
        return plan
    plans = plans_of_reshape(tensors, mesh_name, mesh) + plans_of_exchanged_reshape(tensors, mesh_name, mesh)
    return min((plan, *plans), key=lambda each: _cost(op, tensors, each, mesh))


def _received_in_reshape(op: ReshapeOp, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> int:
    """Return the bytes that all devices receive where operand and result of a reshape have `shardings`."""
    before, after = (
        Layout(value.type, sharding or TensorSharding.replicated_closed(mesh, rank(value.type)), mesh)
        for value, sharding in zip((op.operand, op.result), shardings, strict=True)
    )
    return elements_exchanged_in_reshape(before, after) * element_bytes(op.result.type)


def _cost(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive, and those that they could receive while they compute."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    summed = sum(
        _received_in_sum(*each, plan, mesh) for each in zip(op.results, shardings[len(op.operands) :], strict=True)
    )
    if isinstance(op, SliceOp | PadOp):
        axes_per_dim = tuple(
            tuple(axis for factor in dim for axis in plan.axes_per_factor[factor]) for dim in tensors.rule.operands[0]
        )
        summed += elements_exchanged(op, axes_per_dim, mesh) * element_bytes(op.result.type)
    if isinstance(op, ReshapeOp):
        summed += _received_in_reshape(op, shardings, mesh)
    devices = mesh.size / _num_parts(plan, mesh)
    work = devices * math.prod(tensors.rule.factor_sizes) * _widest(op) / _WORK
    return _received_in_reshards(op, shardings, mesh) + iterations(op) * (summed + work)


def _num_parts(plan: OperationShardings, mesh: Mesh) -> int:
    """Return the number of parts that the work is split into."""
    return total_size((axis for axes in plan.axes_per_factor for axis in axes), mesh)


def _bytes_held(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> int:
    """Return the bytes that a device holds of the tensors of `op`, one that a loop shares in both layouts."""
    values = (*op.operands, *op.results)
    held = 0
    for index, (value, old, new) in enumerate(zip(values, tensors.shardings, plan.shardings, strict=True)):
        held += local_bytes(value.type, new or old, mesh)
        if new is not None and index < len(op.operands) and iterations_of_operand(op, value) < iterations(op):
            held += local_bytes(value.type, old, mesh)
    return held


def _received_in_reshards(op: Operation, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> float:
    """Return the bytes that all devices receive in reshards around `op`, over all iterations of the loops around it.

    Loop-invariant operands are resharded before the loop, as `sdy-hoist-invariant-collectives` moves them there.
    """
    before = sum(
        iterations_of_operand(op, value) * _received_in_reshard(op, before_reshards(value), sharding, mesh)
        for value, sharding in dict.fromkeys(zip(op.operands, shardings, strict=False))
        if sharding is not None
    )
    results = zip(op.results, shardings[len(op.operands) :], strict=True)
    behind = sum(elements_behind(value, sharding) * element_bytes(value.type) for value, sharding in results)
    return before + iterations(op) * behind


def _received_in_reshard(op: Operation, value: SSAValue, sharding: TensorSharding, mesh: Mesh) -> float:
    received = bytes_received(value, sharding, op)
    return charge(received, value, sharding, op, mesh) if received and isinstance(op, SliceOp | PadOp) else received


def _widest(op: Operation) -> int:
    return max(element_bytes(value.type) for value in (*op.operands, *op.results))


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the all-reduce, or in a reduce-scatter where users want a part."""
    sizes, wanted = shape(result.type), get_sharding(result)
    local = local_elements(sharding.dim_axes, sizes, mesh) if sharding else math.prod(sizes)
    needed = local_elements(wanted.dim_axes, sizes, mesh) if wanted else math.prod(sizes)
    parts = total_size(plan.reduction_axes, mesh)
    received = (parts - 1) * min(2 * local / parts, max(needed, local / parts))
    return received * mesh.size * element_bytes(result.type)
