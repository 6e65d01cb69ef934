"""Collectives along a manual axis, as jax lowers them in the body of a `shard_map`."""

from collections.abc import Callable, Sequence

from sdy.axes import AxisRef
from sdy.device_groups import device_groups
from small_scope.indexing import region
from small_scope.program import Program, Shape, Value, type_text

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_REDUCERS = {"i32": ("add", "maximum"), "i1": ("or",)}


def all_reduce(body: Program, value: Value, axis: AxisRef) -> Value:
    """Return the sum of `value` over the devices along `axis`, or the maximum."""
    reducer = body.choices.of(_REDUCERS.get(value.element, ("add",)))
    return _collective(body, "all_reduce", value, value.shape, axis, "", region(reducer, value.element))


def _reduce_scatter(body: Program, value: Value, axis: AxisRef) -> Value:
    parts = axis.size_in(body.mesh)
    dim = body.choices.of(_dims_in_parts(value, parts))
    shape = _resized(value.shape, dim, value.shape[dim] // parts)
    reducer = body.choices.of(_REDUCERS.get(value.element, ("add",)))
    attributes = f"scatter_dimension = {dim} : i64, "
    return _collective(body, "reduce_scatter", value, shape, axis, attributes, region(reducer, value.element))


def _all_gather(body: Program, value: Value, axis: AxisRef) -> Value:
    dim = body.choices.of(_dims_in_parts(value, 1))
    shape = _resized(value.shape, dim, value.shape[dim] * axis.size_in(body.mesh))
    return _collective(body, "all_gather", value, shape, axis, f"all_gather_dim = {dim} : i64, ")


def _all_to_all(body: Program, value: Value, axis: AxisRef) -> Value:
    parts = axis.size_in(body.mesh)
    split = body.choices.of(_dims_in_parts(value, parts))
    joined = body.choices.of(range(len(value.shape)))
    shape = _resized(value.shape, split, value.shape[split] // parts)
    shape = _resized(shape, joined, shape[joined] * parts)
    attributes = f"split_dimension = {split} : i64, concat_dimension = {joined} : i64, split_count = {parts} : i64, "
    groups = _groups(body, axis)
    return body.op(f'"stablehlo.all_to_all"({value.name}) <{{{attributes}{groups}, {_CHANNEL}}}>', shape,
                   value.element, (value,))  # fmt: skip


def _permute(body: Program, value: Value, axis: AxisRef) -> Value:
    """Shift `value` by one device along `axis`; the first device gets zeros."""
    around = body.choices.of((True, False))
    groups = device_groups([axis], body.mesh)
    pairs = [pair for group in groups for pair in zip(group, group[1:] + group[:1] * around, strict=False)]
    text = f"source_target_pairs = dense<{list(map(list, pairs))}> : tensor<{len(pairs)}x2xi64>, {_CHANNEL}"
    return body.op(f'"stablehlo.collective_permute"({value.name}) <{{{text}}}>', value.shape, value.element, (value,))


def _add_index(body: Program, value: Value, axis: AxisRef) -> Value:
    """Add the device's index along `axis`, computed in a nested computation that is manual over all axes."""
    if value.element != "i32":
        return value
    index = body.op(_index_text(body, axis), (), operands=())
    everywhere = body.op(f"stablehlo.broadcast_in_dim {index.name}, dims = []", value.shape, operands=(index,))
    return body.op(f"stablehlo.add {value.name}, {everywhere.name}", value.shape)


def _index_text(body: Program, axis: AxisRef) -> str:
    names = body.mesh.axis_names
    stride = 1
    for name in names[names.index(axis.name) + 1 :]:
        stride *= body.mesh.axis_size(name)
    stride *= body.mesh.axis_size(axis.name) // axis.end_in(body.mesh)
    scalar = "tensor<ui32>"
    lines = (
        f"%stride = stablehlo.constant dense<{stride}> : {scalar} "
        f"%parts = stablehlo.constant dense<{axis.size_in(body.mesh)}> : {scalar} "
        f"%id = stablehlo.partition_id : {scalar} "
        f"%place = stablehlo.divide %id, %stride : {scalar} %own = stablehlo.remainder %place, %parts : {scalar} "
        f"%index = stablehlo.convert %own : ({scalar}) -> tensor<i32>"
    )
    rest = ", ".join(f'"{name}"' for name in body.free)
    return (
        f"sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={{{rest}}} () {{ "
        f"{lines} sdy.return %index : tensor<i32> }}"
    )


Move = Callable[[Program, Value, AxisRef], Value]
KEEP_SHAPE: Sequence[Move] = (all_reduce, _permute, _add_index)
"""Collectives whose results have the shapes of their operands."""
MOVES: Sequence[Move] = (*KEEP_SHAPE, _reduce_scatter, _all_gather, _all_to_all)


def _collective(
    body: Program, name: str, value: Value, shape: Shape, axis: AxisRef, attributes: str, combine: str = ""
) -> Value:
    text = f"{attributes}{_groups(body, axis)}, {_CHANNEL}, use_global_device_ids"
    return body.op(f'"stablehlo.{name}"({value.name}) <{{{text}}}> {combine}', shape, value.element, (value,))


def _dims_in_parts(value: Value, parts: int) -> list[int]:
    return [dim for dim, size in enumerate(value.shape) if size and size % parts == 0]


def _groups(body: Program, axis: AxisRef) -> str:
    groups = device_groups([axis], body.mesh)
    return f"replica_groups = dense<{groups}> : {type_text((len(groups), len(groups[0])), 'i64')}"


def _resized(shape: Shape, dim: int, size: int) -> Shape:
    return (*shape[:dim], size, *shape[dim + 1 :])
