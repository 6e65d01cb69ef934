"""Choose the cheapest shardings for an operation: several candidates, each with its own reshards, are compared.

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

*Two convolutions of one image.* The gradient of the kernel of a convolution needs the image again:

    tensor<1x16x8xf32> [{}, {}, {"x"}], kernel tensor<4x8x8xf32> -> tensor<1x16x8xf32> [{}, {}, {"x"}]

Alone, either convolution is cheapest if it reduces partial sums. If both are considered, one all-gather of the image is
cheaper: the first is charged for it only what the second does not save.

*A convolution whose result is larger than its operands.* The gradient of a kernel, of an image and the gradient of the
result, both with split rows:

    tensor<1x8x8xf32> [{}, {"x"}, {}], tensor<1x8x8xf32> [{}, {"x"}, {}] -> tensor<4x8x8xf32> [{}, {}, {}]

Either the partial sums of 256 elements are all-reduced, or the operands of 64 elements each are all-gathered.

*A scatter of split updates.* Either partial results are summed, or the updates are resharded like the input:

    tensor<8x16xf32> [{}, {"x"}], updates tensor<8x16xf32> [{"x"}, {}] -> tensor<8x16xf32> [{"x"}, {}]
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.ir import BlockArgument, Operation, SSAValue

from sdy.axes import total_size
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import rank, shape
from sdy.mesh import Mesh
from sdy.passes.common.properties import element_bytes
from sdy.passes.common.replication_cost import local_bytes
from sdy.passes.spmd.plan.candidate_plans import (
    plans_of_exchanged_reshape,
    plans_of_reshape,
    plans_of_tensors,
)
from sdy.passes.spmd.plan.collective_cost import local_elements
from sdy.passes.spmd.plan.exchange_cost import (
    elements_exchanged,
    elements_exchanged_in_reshape,
    elements_exchanged_in_windows,
)
from sdy.passes.spmd.plan.operation_plan import (
    Meshes,
    OperationShardings,
    Tensors,
    plan_operation,
    plan_with_axes,
    summed_axes,
)
from sdy.passes.spmd.plan.rematerialize import bytes_received, least_bytes_received
from sdy.passes.spmd.plan.reshard_cost import (
    before_reshards,
    elements_behind,
    elements_resharded,
    is_on_all_devices,
    iterations,
    iterations_of_operand,
    least_elements_behind,
    shardings_of_uses,
)
from sdy.passes.spmd.plan.sharded_operation import ShardedOperation, shardings_around
from sdy.passes.spmd.plan.shared_reshards import charge, is_elementwise, joins, num_sharing, variables
from sdy.passes.spmd.plan.special_rules import rule_of_convolution, rule_of_split_kernel
from sdy.passes.spmd.shards.layout import Layout
from sdy.sharding import DimSharding, TensorSharding, equivalent
from sdy.stablehlo.convolution import ConvolutionOp
from sdy.stablehlo.dot import DotGeneralOp, DotOp
from sdy.stablehlo.padding import PadOp
from sdy.stablehlo.shape import ReshapeOp
from sdy.stablehlo.slicing import DynamicSliceOp, SliceOp
from sdy.stablehlo.windows import ReduceWindowOp

_WORK = 1000
"""Multiply-adds that a device computes in about the time that it takes to receive one element."""

Copies = Mapping[SSAValue, TensorSharding]
"""A sharding in which a value is available, beside its own."""

_EXCHANGING = (SliceOp, PadOp, ConvolutionOp, ReduceWindowOp)
"""Operations whose exchange of rows along permutation factors `_cost` counts."""

_DOTS = (DotGeneralOp, DotOp)
"""Matrix products: their compute dominates, so that no candidate splits them into fewer parts."""


def cheapest_operation(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, meshes: Meshes, reshapes: bool
) -> OperationShardings:
    """Return the cheapest plan: that of `plan_operation` or an alternative.

    Alternatives do not split reduction factors, do not move the axes of need-replication factors to other factors, or
    come from `candidate_plans`.

    Args:
        op: The operation.
        tensors: The sharding rule of `op`, and the shardings and sizes of its operands and results.
        mesh_name: The mesh on which the operation is to run.
        meshes: All meshes that the shardings refer to.
        reshapes: Whether the operation is a reshape; see `plan_operation`.
    """
    mesh = meshes[mesh_name]
    plan = plan_operation(tensors, mesh_name, meshes, reshapes)
    if isinstance(op, ReshapeOp) and _have_same_devices(meshes, mesh):
        return _cheapest_reshape(op, tensors, plan, mesh_name, mesh)
    is_partial = isinstance(op, ConvolutionOp) and bool(plan.reduction_axes)
    if not any(plan.shardings) and not is_partial:
        before = _plan_before_reshards(op, tensors, mesh_name, mesh)
        # Without fewer bytes, a constraint stays where the program has it.
        return before if before and _received(op, tensors, before, mesh) < _received(op, tensors, plan, mesh) else plan
    alternatives = _alternatives(op, tensors, plan, mesh_name, meshes, reshapes)
    best = plan if len(alternatives) == 1 else min(alternatives, key=lambda each: _cost(op, tensors, each, mesh))
    return replace(best, reduction_axes=()) if isinstance(op, DynamicSliceOp) else best


def _plan_before_reshards(
    op: Operation, tensors: Tensors, mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings | None:
    """Return the plan of an operation in the sharding that all operands have before they are resharded.

    The result is resharded instead. None if there is no such sharding, or if the operation is neither elementwise nor a
    slice of a tensor that only it uses.
    """
    if isinstance(op, SliceOp) and op.operand.has_one_use():
        values, dims = [op.operand], tensors.rule.operands[0]
    elif is_elementwise(op):
        values, dims = variables(op), tensors.rule.results[0]
    else:
        return None
    sources = set(map(get_sharding, map(before_reshards, values)))
    source = sources.pop() if len(sources) == 1 else None
    if source is None or source.mesh != mesh_name or equivalent(source, get_sharding(op.results[0])):
        return None
    axes = {factor: axes for [factor], axes in zip(dims, source.dim_axes, strict=True)}
    return plan_with_axes(
        tensors, tuple(axes.get(factor, ()) for factor in range(tensors.rule.num_factors)), mesh_name, mesh
    )


def _alternatives(
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
    if _have_same_devices(meshes, mesh):
        has_elements = 0 not in (tensors.sizes[0], tensors.sizes[-1])
        permutes = isinstance(op, _EXCHANGING) and has_elements
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
        parts = _num_parts(plan, mesh)
        yield from (each for each in candidates if not each.reduction_axes and _num_parts(each, mesh) >= parts)


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


def _have_same_devices(meshes: Meshes, mesh: Mesh) -> bool:
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


def _cheapest_reshape(
    op: ReshapeOp, tensors: Tensors, plan: OperationShardings, mesh_name: str | Mesh, mesh: Mesh
) -> OperationShardings:
    """Return the cheapest plan of a reshape: `plan`, one that splits shared factors, or one with an exchange."""
    if not any(plan.shardings) and not _received_in_reshape(op, tensors.shardings, mesh):
        return plan
    best, cost = plan, _cost(op, tensors, plan, mesh)
    for each in (*plans_of_reshape(tensors, mesh_name, mesh), *plans_of_exchanged_reshape(tensors, mesh_name, mesh)):
        if _least_cost_of_reshape(op, tensors, each, mesh) < cost and (other := _cost(op, tensors, each, mesh)) < cost:
            best, cost = each, other
    return best


def _least_cost_of_reshape(op: ReshapeOp, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return a lower bound of the cost of a plan, without the search for its reshards."""
    before, behind = (new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True))
    received = least_elements_behind(op.result, behind) * element_bytes(op.result.type)
    operand = 0.0 if before is None else least_bytes_received(before_reshards(op.operand), before, op)
    return operand + iterations(op) * (received + _work_of_plan(op, tensors, plan, mesh))


def _received_in_reshape(op: ReshapeOp, shardings: Sequence[TensorSharding | None], mesh: Mesh) -> int:
    """Return the bytes that all devices receive in a reshape whose operand and result have `shardings`."""
    before, after = _layouts((op.operand, op.result), shardings, mesh)
    return elements_exchanged_in_reshape(before, after) * element_bytes(op.result.type)


def _layouts(values: Sequence[SSAValue], shardings: Sequence[TensorSharding | None], mesh: Mesh) -> list[Layout]:
    return [
        Layout(value.type, sharding or TensorSharding.replicated_closed(mesh, rank(value.type)), mesh)
        for value, sharding in zip(values, shardings, strict=True)
    ]


def _received(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the reshards of a plan, and in the exchange of rows of a slice."""
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    return _received_in_reshards(op, shardings, mesh, None) + iterations(op) * _received_in_exchange(
        op, tensors, plan, mesh
    )


def _received_in_exchange(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the exchange of rows of a slice or a pad; 0 for others."""
    if not isinstance(op, SliceOp | PadOp):
        return 0
    axes_per_dim = tuple(
        tuple(axis for factor in dim for axis in plan.axes_per_factor[factor]) for dim in tensors.rule.operands[0]
    )
    return elements_exchanged(op, axes_per_dim, mesh) * element_bytes(op.result.type)


def _cost(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh, copies: Copies | None = None) -> float:
    """Return the cost of a plan in bytes: those that all devices receive, plus the compute time as bytes received.

    Args:
        op: The operation.
        tensors: Its sharding rule, shardings and sizes.
        plan: The plan.
        mesh: The mesh of all layouts.
        copies: Further shardings in which operands are available at no cost. If it is given, the reshards of operands
            are not shared with other operations.
    """
    shardings = [new or old for new, old in zip(plan.shardings, tensors.shardings, strict=True)]
    summed = sum(
        _received_in_sum(*each, plan, mesh) for each in zip(op.results, shardings[len(op.operands) :], strict=True)
    )
    summed += _received_in_exchange(op, tensors, plan, mesh)
    if isinstance(op, ConvolutionOp | ReduceWindowOp):
        layouts = _layouts((*op.operands, *op.results), shardings, mesh)
        summed += elements_exchanged_in_windows(op, layouts) * element_bytes(op.operands[0].type)
    if isinstance(op, ReshapeOp):
        summed += _received_in_reshape(op, shardings, mesh)
    work = _work_of_plan(op, tensors, plan, mesh)
    return _received_in_reshards(op, shardings, mesh, copies) + iterations(op) * (summed + work)


def _work_of_plan(op: Operation, tensors: Tensors, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the compute time of all devices as bytes received."""
    devices = mesh.size / _num_parts(plan, mesh)
    return devices * math.prod(tensors.rule.factor_sizes) * _widest(op) / _WORK


def _num_parts(plan: OperationShardings, mesh: Mesh) -> int:
    """Return the number of shards that the computation is split into."""
    return total_size((axis for axes in plan.axes_per_factor for axis in axes), mesh)


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


def _received_in_reshards(
    op: Operation, shardings: Sequence[TensorSharding | None], mesh: Mesh, copies: Copies | None
) -> float:
    """Return the bytes that all devices receive in reshards around `op`, in all iterations of the enclosing loops.

    The reshard of a loop-invariant operand counts once, because `sdy-hoist-invariant-collectives` hoists it. Operations
    that share the reshards of their operands count an equal part of them each, if the results keep their shardings.
    """
    results = [*zip(op.results, shardings[len(op.operands) :], strict=True)]
    is_shared = all(sharding == get_sharding(result) for result, sharding in results)
    before = sum(
        iterations_of_operand(op, value)
        * _received_in_reshard(op, before_reshards(value), sharding, mesh, copies)
        / (num_sharing(op, value) if is_shared else 1)
        for value, sharding in dict.fromkeys(zip(op.operands, shardings, strict=False))
        if sharding is not None
    )
    behind = sum(elements_behind(value, sharding) * element_bytes(value.type) for value, sharding in results)
    if behind and joins(op, shardings[-1], mesh):
        behind = 0
    return before + iterations(op) * behind


def _received_in_reshard(
    op: Operation, value: SSAValue, sharding: TensorSharding, mesh: Mesh, copies: Copies | None
) -> float:
    received = bytes_received(value, sharding, op)
    if copies is not None:
        if value in copies:
            from_copy = elements_resharded(value, copies[value], sharding, op) * element_bytes(value.type)
            received = min(received, from_copy)
        return received
    if not received or not isinstance(op, _EXCHANGING):
        return received
    if isinstance(op, ConvolutionOp):
        users = dict.fromkeys(use.operation for use in value.uses)
        later = [user for user in users if isinstance(user, ConvolutionOp) and op.is_before_in_block(user)]
        received -= sum(_saved_in_convolution(user, value, sharding) for user in later)
    return charge(received, value, sharding, op, mesh) if received > 0 else 0.0


def _saved_in_convolution(op: ConvolutionOp, value: SSAValue, sharding: TensorSharding) -> float:
    """Return the bytes that all devices save around `op` if its operand `value` is available in `sharding` as well."""
    operation = ShardedOperation.of(op, shardings_around(op))
    if operation is None or operation.reduction is None:
        return 0.0
    mesh_name, meshes, mesh = operation.mesh_name, operation.meshes, operation.mesh
    rule = rule_of_convolution(op, operation.rule, operation.shardings, mesh)
    tensors = operation.tensors(rule)
    plan = plan_operation(tensors, mesh_name, meshes, reshapes=False)
    plans = _alternatives(op, tensors, plan, mesh_name, meshes, reshapes=False)
    here, there = (min(_cost(op, tensors, plan, mesh, copies) for plan in plans) for copies in ({}, {value: sharding}))
    return here - there


def _widest(op: Operation) -> int:
    return max(element_bytes(value.type) for value in (*op.operands, *op.results))


def _received_in_sum(result: SSAValue, sharding: TensorSharding | None, plan: OperationShardings, mesh: Mesh) -> float:
    """Return the bytes that all devices receive in the all-reduce, or in the reduce-scatter if all uses are split."""
    sizes = shape(result.type)
    local = local_elements(sharding.dim_axes, sizes, mesh) if sharding else math.prod(sizes)
    uses = set(shardings_of_uses(result)) or {get_sharding(result)}
    needed = max(local_elements(use.dim_axes, sizes, mesh) if use and use.dims else math.prod(sizes) for use in uses)
    parts = total_size(plan.reduction_axes, mesh)
    received = (parts - 1) * min(2 * local / parts, max(needed, local / parts))
    return received * mesh.size * element_bytes(result.type)
