"""The sharding of a value, wherever it is stored; the only module that depends on these places.

a function's argument or result       its attribute `sdy.sharding`
a target of a data-flow edge          the `sdy.data_flow_edge` of the edge, if any, else its owner
the result of an sdy operation        `sharding` or `out_sharding`
any other result                      the operation's attribute `sdy.sharding`, a list with a sharding per result
any other block argument              nowhere: it cannot have a sharding
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sdy.dialect.attributes import SHARDING, TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.collectives import CollectiveOp
from sdy.dialect.interfaces import ShardableDataFlow, data_flow_of, defining_op
from sdy.dialect.ops import DataFlowEdgeOp, PropagationBarrierOp, ReshardOp, ShardingConstraintOp
from sdy.ir.shapes import rank
from sdy.sharding import TensorSharding


def data_flow_edge_of(target: SSAValue) -> DataFlowEdgeOp | None:
    """Return the `sdy.data_flow_edge` of the edge that `target` belongs to, if any."""
    op = defining_op(target)
    if op is None or (flow := data_flow_of(op)) is None:
        return None
    user = flow.edge_owner_from_target(op, target).get_user_of_unique_use()
    return user if isinstance(user, DataFlowEdgeOp) else None


def shardable_value(value: SSAValue) -> SSAValue | None:
    """Return the value that holds the sharding of `value`; None if `value` cannot have a sharding."""
    op = defining_op(value)
    if op is None:
        return None
    if (flow := data_flow_of(op)) is not None:
        edge = data_flow_edge_of(value)
        if edge is not None:
            return edge.result
        return value if isinstance(value, OpResult) else flow.edge_owner_from_target(op, value)
    return value if isinstance(value, OpResult) or isinstance(op, FuncOp) else None


def get_sharding(value: SSAValue) -> TensorSharding | None:
    """Return the sharding of a value.

    Args:
        value: A result of an operation or a block argument.

    Returns:
        The sharding, or None if the value has none.
    """
    # Fast path for most values: results of operations that store their own sharding. isinstance is slow for abstract
    # classes, such as those of values and attributes.
    if type(value) is OpResult and _accessor_of(value.op.__class__) is _RESULT:
        attribute = value.op.attributes.get(SHARDING)
        return attribute.data[value.index] if type(attribute) is TensorShardingPerValueAttr else None
    holder = shardable_value(value)
    if holder is None:
        return None
    op = defining_op(holder)
    assert op is not None
    return _accessor_of(op.__class__).get(op, holder)


def set_sharding(value: SSAValue, sharding: TensorSharding) -> None:
    """Set the sharding of `value`; no effect if it cannot have one.

    If the shardings of several values are stored in one list that does not exist yet, the other shardings become open.
    """
    if isinstance(value, OpResult) and _accessor_of(value.op.__class__) is _RESULT:
        _set_result(value.op, value, sharding)
        return
    holder = shardable_value(value)
    if holder is None:
        return
    op = defining_op(holder)
    assert op is not None
    _accessor_of(op.__class__).set(op, holder, sharding)


class _Accessor(NamedTuple):
    """Getter and setter of the sharding of a result or region argument of an operation."""

    get: Callable[[Any, SSAValue], TensorSharding | None]
    set: Callable[[Any, SSAValue, TensorSharding], None]


def _get_func_arg(func: FuncOp, argument: SSAValue) -> TensorSharding | None:
    return func_arg_sharding(func, _index(argument))


def _set_func_arg(func: FuncOp, argument: SSAValue, sharding: TensorSharding) -> None:
    set_func_arg_sharding(func, _index(argument), sharding)


def _property(name: str) -> _Accessor:
    def get(op: Operation, result: SSAValue) -> TensorSharding | None:
        attribute = op.properties.get(name)
        return attribute.data if isinstance(attribute, TensorShardingAttr) else None

    def set_(op: Operation, result: SSAValue, sharding: TensorSharding) -> None:
        op.properties[name] = TensorShardingAttr.of(sharding)

    return _Accessor(get, set_)


def _get_edge_owner(op: Operation, owner: SSAValue) -> TensorSharding | None:
    flow = data_flow_of(op)
    assert flow is not None
    is_result = isinstance(owner, OpResult)
    get = flow.result_edge_owner_shardings if is_result else flow.block_argument_edge_owner_shardings
    return get(op)[_index(owner)]


def _set_edge_owner(op: Operation, owner: SSAValue, sharding: TensorSharding) -> None:
    flow = data_flow_of(op)
    assert flow is not None
    if isinstance(owner, OpResult):
        owners, get = flow.result_edge_owners(op), flow.result_edge_owner_shardings
        set_all = flow.set_result_edge_owner_shardings
    else:
        owners, get = flow.block_argument_edge_owners(op), flow.block_argument_edge_owner_shardings
        set_all = flow.set_block_argument_edge_owner_shardings
    set_all(op, _with_open_defaults(get(op), [owner.type for owner in owners], {_index(owner): sharding}))


def _get_result(op: Operation, result: SSAValue) -> TensorSharding | None:
    return result_shardings(op)[_index(result)]


def _set_result(op: Operation, result: SSAValue, sharding: TensorSharding) -> None:
    if len(op.results) == 1:
        op.attributes[SHARDING] = TensorShardingPerValueAttr.of((sharding,))
    else:
        set_result_shardings(op, _with_open_defaults(result_shardings(op), op.result_types, {_index(result): sharding}))


_ACCESSORS: dict[type[Operation], _Accessor] = {
    FuncOp: _Accessor(_get_func_arg, _set_func_arg),
    DataFlowEdgeOp: _property("sharding"),
    ShardingConstraintOp: _property("sharding"),
    ReshardOp: _property("sharding"),
    CollectiveOp: _property("out_sharding"),
}
_EDGE_OWNER = _Accessor(_get_edge_owner, _set_edge_owner)
_RESULT = _Accessor(_get_result, _set_result)


@cache
def _accessor_of(op_class: type[Operation]) -> _Accessor:
    """Return the accessor of operations of this class; cached, since this is a hot path."""
    for base, accessor in _ACCESSORS.items():
        if issubclass(op_class, base):
            return accessor
    return _EDGE_OWNER if op_class.has_trait(ShardableDataFlow, value_if_unregistered=False) else _RESULT


def stores_result_shardings(op_class: type[Operation]) -> bool:
    """Return whether operations of this class store the shardings of results in `sdy.sharding`, as most do."""
    return _accessor_of(op_class) is _RESULT


def get_sharding_behind_barriers(value: SSAValue) -> TensorSharding | None:
    """Return the sharding of `value`, or of the operand of the propagation barriers that define it."""
    while isinstance(value, OpResult) and value.op.__class__ is PropagationBarrierOp:
        value = value.op.operands[0]
    return get_sharding(value)


def _with_open_defaults(
    shardings: Sequence[TensorSharding | None], types: Sequence[Attribute], new: dict[int, TensorSharding]
) -> tuple[TensorSharding, ...]:
    """Return `shardings` of values of `types`, updated with `new` by index; missing shardings become open."""
    mesh = next(iter(new.values())).mesh
    return tuple(
        new.get(index) or old or TensorSharding.replicated_open(mesh, rank(type_))
        for index, (old, type_) in enumerate(zip(shardings, types, strict=True))
    )


def has_result_shardings(op: Operation) -> bool:
    """Return whether `op` has an attribute `sdy.sharding`."""
    return SHARDING in op.attributes


def result_shardings(op: Operation) -> tuple[TensorSharding | None, ...]:
    """Return the shardings of the results of `op` in `sdy.sharding`; None for each if the attribute is missing."""
    attribute = op.attributes.get(SHARDING)
    if isinstance(attribute, TensorShardingPerValueAttr):
        return attribute.data
    return (None,) * len(op.results)


def set_result_shardings(op: Operation, shardings: Sequence[TensorSharding]) -> None:
    """Set the shardings of the results of `op` in `sdy.sharding`; an empty list removes the attribute."""
    if shardings:
        op.attributes[SHARDING] = TensorShardingPerValueAttr.of(tuple(shardings))
    else:
        op.attributes.pop(SHARDING, None)


def func_arg_sharding(func: FuncOp, index: int) -> TensorSharding | None:
    """Return the sharding of argument `index` of `func`."""
    return _entry(func.arg_attrs, index)


def func_result_sharding(func: FuncOp, index: int) -> TensorSharding | None:
    """Return the sharding of result `index` of `func`."""
    return _entry(func.res_attrs, index)


def func_arg_shardings(func: FuncOp) -> Sequence[TensorSharding | None]:
    """Return the sharding of each argument of `func`."""
    return _entries(func.arg_attrs, len(func.function_type.inputs))


def func_result_shardings(func: FuncOp) -> Sequence[TensorSharding | None]:
    """Return the sharding of each result of `func`."""
    return _entries(func.res_attrs, len(func.function_type.outputs))


def set_func_arg_sharding(func: FuncOp, index: int, sharding: TensorSharding | None) -> None:
    """Set or remove the sharding of argument `index` of `func`."""
    _change_entries(func, "arg_attrs", len(func.function_type.inputs), [(index, sharding)])


def set_func_result_sharding(func: FuncOp, index: int, sharding: TensorSharding | None) -> None:
    """Set or remove the sharding of result `index` of `func`."""
    _change_entries(func, "res_attrs", len(func.function_type.outputs), [(index, sharding)])


def set_func_arg_shardings(func: FuncOp, shardings: Iterable[TensorSharding | None]) -> None:
    """Set or remove the shardings of the arguments of `func`."""
    _change_entries(func, "arg_attrs", len(func.function_type.inputs), enumerate(shardings))


def set_func_result_shardings(func: FuncOp, shardings: Iterable[TensorSharding | None]) -> None:
    """Set or remove the shardings of the results of `func`."""
    _change_entries(func, "res_attrs", len(func.function_type.outputs), enumerate(shardings))


def _index(value: SSAValue) -> int:
    return cast(OpResult | BlockArgument, value).index


def _entry(attributes: ArrayAttr[DictionaryAttr] | None, index: int) -> TensorSharding | None:
    return None if attributes is None else _sharding_in(attributes.data[index])


def _entries(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> Sequence[TensorSharding | None]:
    return [None] * count if attributes is None else [_sharding_in(entry) for entry in attributes.data]


def _sharding_in(entry: DictionaryAttr) -> TensorSharding | None:
    # isinstance is slow for abstract classes, such as those of attributes.
    attribute = _attribute_in(entry)
    return attribute.data if type(attribute) is TensorShardingAttr else None


def _attribute_in(entry: DictionaryAttr) -> Attribute | None:
    # `get` is slow for missing keys: it is implemented in Python, with an exception.
    return entry.data[SHARDING] if SHARDING in entry.data else None  # noqa: SIM401


def _change_entries(func: FuncOp, name: str, count: int, changes: Iterable[tuple[int, TensorSharding | None]]) -> None:
    """Change the shardings in the property `name`, a list of `count` dictionaries of arguments or results."""
    existing = cast(ArrayAttr[DictionaryAttr] | None, func.properties.get(name))
    entries = list(existing) if existing is not None else [_NO_ATTRIBUTES] * count
    for index, sharding in changes:
        new = None if sharding is None else TensorShardingAttr.of(sharding)
        if new is not _attribute_in(entries[index]):
            changed = {**entries[index].data, SHARDING: new}
            entries[index] = DictionaryAttr({key: value for key, value in changed.items() if value is not None})
    if any(entry.data for entry in entries):
        func.properties[name] = ArrayAttr(entries)
    else:
        func.properties.pop(name, None)


_NO_ATTRIBUTES = DictionaryAttr({})
