"""Alternatives to the plan of `plan_operation` for one operation; `cheapest_operation` takes the cheapest.

*A contraction whose operands have different shardings.* With an axis "x" of size 4, a replicated left operand and a
right operand that is split along the contracting dimension,

    tensor<64x8xf32> [{}, {}] . tensor<8x8xf32> [{"x"}, {}] -> tensor<64x8xf32> [{}, {}]

either the left operand is sliced as well and the partial sums of 512 elements are all-reduced, or the 64 elements of
the right operand are all-gathered and every device computes the full product.

*A loop-invariant operand with a dimension that must be replicated.* Each iteration reads one slice:

    tensor<6x8x8xf32> [{"x"}, {}, {}] -> tensor<1x8x8xf32> [{}, {}, {}]

Either an all-to-all moves "x" to another dimension of the operand, which sends less than an all-gather, and each slice
is all-gathered; or the operand is all-gathered once, before the loop.

*A dimension that must be replicated.* A Fourier transform needs its last dimension unpartitioned:

    tensor<64x64xf32> [{}, {"x"}] -> tensor<64x33xcomplex<f32>> [{}, {}]

Either an all-to-all moves "x" to the rows and the result is all-gathered, 8 bytes per element, or the operand is
all-gathered, 4 bytes per element.

*Tensors with different shardings*: see `sdy.passes.spmd.plan.candidate_plans`.

*A dynamic slice of a split dimension.*

    tensor<64x8xf32> [{"x"}, {}] -> tensor<1x8xf32> [{}, {}]

Either the operand is all-gathered, or each device reads its own rows of the slice, with zeros for the others, and the
8 elements are all-reduced. `sdy-convert-global-to-local` does the latter if the operand stays split.

*A convolution whose result is larger than its operands.* The gradient of a kernel, of an image and the gradient of the
result, both with split rows:

    tensor<1x8x8xf32> [{}, {"x"}, {}], tensor<1x8x8xf32> [{}, {"x"}, {}] -> tensor<4x8x8xf32> [{}, {}, {}]

Either the partial sums of 256 elements are all-reduced, or the operands of 64 elements each are all-gathered.

*A scatter of split updates.* Either partial results are summed, or the updates are resharded like the input:

    tensor<8x16xf32> [{}, {"x"}], updates tensor<8x16xf32> [{"x"}, {}] -> tensor<8x16xf32> [{"x"}, {}]
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from xdsl.ir import BlockArgument, Operation

from sdy.ir.shapes import shape
from sdy.mesh import Mesh
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.spmd.plan.candidate_plans import plans_of_tensors
from sdy.passes.spmd.plan.exchange_cost import EXCHANGING
from sdy.passes.spmd.plan.operation_plan import Meshes, OperationShardings, Tensors, plan_operation, summed_axes
from sdy.passes.spmd.plan.reshard_cost import before_reshards, is_on_all_devices, iterations, iterations_of_operand
from sdy.passes.spmd.plan.special_rules import rule_of_split_kernel
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.slicing import DynamicSliceOp

_DOTS = (DotGeneralOp, DotOp)
"""Matrix products: their compute dominates, so that no candidate splits them into fewer parts."""


def alternatives(
    op: Operation, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool
) -> tuple[OperationShardings, ...]:
    """Return `plan` and its alternatives, for an operation other than a reshape."""
    mesh, rule = meshes[mesh_name], tensors.rule
    plans = [plan]
    if plan.reduction_axes and summed_axes(tensors, mesh_name, mesh) is None:
        replicated_sums = replace(tensors, rule=rule.with_replicated(rule.reduction))
        plans.append(plan_operation(replicated_sums, mesh_name, meshes, reshapes))
    if rule.need_replication:
        plans.append(plan_operation(tensors, mesh_name, meshes, reshapes, moves_axes=False))
    if have_same_devices(meshes, mesh):
        has_elements = 0 not in (tensors.sizes[0], tensors.sizes[-1])
        permutes = isinstance(op, EXCHANGING) and has_elements
        moves_whole = rule.reduction or rule.need_replication or (rule.permutation and not permutes)
        most = _bytes_held(op, tensors, plan, mesh) if moves_whole else math.inf
        candidates = plans_of_tensors(tensors, mesh_name, mesh, permutes)
        if isinstance(op, _DOTS):
            candidates = _plans_without_sums(op, plan, candidates, mesh)
        plans += (
            each
            for each in dict.fromkeys(candidates)
            if _bytes_held(op, tensors, each, mesh) <= most
            or ((isinstance(op, _DOTS) or not plan.reduction_axes) and _runs_as_in_xla(op, each))
            or _fits_instead_of_partial_sums(op, tensors, plan, each, mesh)
        )
        if isinstance(op, ConvolutionOp) and (split := rule_of_split_kernel(op, rule, tensors.shardings)):
            candidates = plans_of_tensors(replace(tensors, rule=split), mesh_name, mesh, permutes)
            plans += (each for each in candidates if each.reduction_axes)
    if isinstance(op, DynamicSliceOp) and (summed := _summed_slice(op, tensors, mesh_name)):
        plans.append(summed)
    return tuple(dict.fromkeys(plans))


def _plans_without_sums(
    op: Operation, plan: OperationShardings, candidates: Iterable[OperationShardings], mesh: Mesh
) -> Iterator[OperationShardings]:
    """Yield the plans of a matrix product that split it as finely as `plan`, which reshards operands and sums."""
    if plan.reduction_axes and any(plan.shardings[: len(op.operands)]):
        parts = plan.num_parts(mesh)
        yield from (each for each in candidates if not each.reduction_axes and each.num_parts(mesh) >= parts)


def _fits_instead_of_partial_sums(
    op: Operation, tensors: Tensors, plan: OperationShardings, other: OperationShardings, mesh: Mesh
) -> bool:
    """Return whether the operands of a convolution can be gathered where `plan` has its partial sums."""
    if not isinstance(op, ConvolutionOp) or not plan.reduction_axes or other.reduction_axes:
        return False
    return _bytes_held(op, tensors, other, mesh, at_peak=True) <= _bytes_held(op, tensors, plan, mesh, at_peak=True)


def _runs_as_in_xla(op: Operation, plan: OperationShardings) -> bool:
    """Return whether the plan reshards operands to the sharding of the results, or slices results of whole operands.

    XLA's partitioner does the same, so that the operation needs no more memory than under `jax.jit`, although it may
    need more than in another plan. Operations in loops are an exception, since `sdy-hoist-invariant-collectives` moves
    the reshards of their operands out of the loop.
    """
    operands, results = plan.shardings[: len(op.operands)], plan.shardings[len(op.operands) :]
    slices_results = not any(operands) and all(is_on_all_devices(before_reshards(value)) for value in op.operands)
    used = (sharding for result, sharding in zip(op.results, results, strict=True) if result.first_use is not None)
    return not plan.reduction_axes and (slices_results or not any(used)) and iterations(op) == 1


def have_same_devices(meshes: Meshes, mesh: Mesh) -> bool:
    """Return whether all meshes have the devices of `mesh`, so that collectives can reshard between them."""
    return all(other.device_ids == mesh.device_ids for other in meshes.values())


def _summed_slice(op: DynamicSliceOp, tensors: Tensors, mesh_name: str | Mesh) -> OperationShardings | None:
    """Return the plan that keeps the operand's sharding and all-reduces the slice, or None if that is not on this mesh.

    The plan's reduction axes are those of the all-reduce into which the dynamic slice itself is lowered.
    """
    operand, *_, result = tensors.shardings
    if operand is None or operand.mesh != mesh_name:
        return None
    sizes = zip(shape(op.operand.type), shape(op.result.type), strict=True)
    sliced = [before != after for before, after in sizes]
    axes = operand.dim_axes
    kept = tuple(DimSharding() if cut else DimSharding(of_dim) for cut, of_dim in zip(sliced, axes, strict=True))
    replicated_slice = TensorSharding(operand.mesh, kept)
    summed = tuple(axis for cut, of_dim in zip(sliced, axes, strict=True) if cut for axis in of_dim)
    unchanged = (None,) * len(op.operands)
    return OperationShardings(
        (*unchanged, None if equivalent(replicated_slice, result) else replicated_slice), axes, summed
    )


def _bytes_held(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh, at_peak: bool = False) -> int:
    """Return the bytes of a device's shards of the tensors of `op`, each in its larger sharding, around `op` or in it.

    A loop-invariant operand counts in both shardings. With `at_peak`, so do arguments of the program and partial sums.
    """
    held = 0
    for index, (value, old, new) in enumerate(
        zip((*op.operands, *op.results), tensors.shardings, plan.shardings, strict=True)
    ):
        both = [local_bytes(value.type, sharding, mesh) for sharding in {old, new or old}]
        is_operand = index < len(op.operands)
        is_invariant = is_operand and iterations_of_operand(op, value) < iterations(op)
        is_argument = is_operand and isinstance(before_reshards(value), BlockArgument)
        held += sum(both) if is_invariant or (at_peak and is_argument) else max(both)
        if at_peak and plan.reduction_axes and not is_operand:
            held += local_bytes(value.type, new or old, mesh)
    return held
