"""The sharding of a value, wherever it is kept. This is the one place that knows where that is.

a function's argument or result       its attribute `sdy.sharding`
a target of a data-flow edge          the edge: its `sdy.data_flow_edge` where there is one, else its owner
the result of an sdy operation        `sharding` or `out_sharding`
any other result                      the operation's attribute `sdy.sharding`, one sharding for each result
any other block argument              nowhere: it has none and takes none
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
    """The `sdy.data_flow_edge` of the data-flow edge that `target` is a target of, None where there is none."""
    op = defining_op(target)
    if op is None or (flow := data_flow_of(op)) is None:
        return None
    user = flow.edge_owner_from_target(op, target).get_user_of_unique_use()
    return user if isinstance(user, DataFlowEdgeOp) else None


def shardable_value(value: SSAValue) -> SSAValue | None:
    """The value that the sharding of `value` is kept with, None where it can have no sharding."""
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
    """The sharding of `value`, None where it has none."""
    # Most values are the result of an operation that keeps its sharding itself, and are asked about in a hurry: the
    # classes of values and attributes are abstract ones, with which isinstance is slow to say no.
    if type(value) is OpResult and _accessor_of(value.op.__class__) is _RESULT:
        attribute = value.op.attributes.get(SHARDING)
        return attribute.data[value.index] if type(attribute) is TensorShardingPerValueAttr else None
    kept_with = shardable_value(value)
    if kept_with is None:
        return None
    op = defining_op(kept_with)
    assert op is not None
    return _accessor_of(op.__class__).get(op, kept_with)


def set_sharding(value: SSAValue, sharding: TensorSharding) -> None:
    """Give `value` this sharding; nothing happens where it can have none.

    Where the shardings of several values are kept together and none has one yet, the others become open.
    """
    if isinstance(value, OpResult) and _accessor_of(value.op.__class__) is _RESULT:
        _set_result(value.op, value, sharding)
        return
    kept_with = shardable_value(value)
    if kept_with is None:
        return
    op = defining_op(kept_with)
    assert op is not None
    _accessor_of(op.__class__).set(op, kept_with, sharding)


class _Accessor(NamedTuple):
    """How an operation gets and sets the sharding of a value that it defines, or of an argument of its region."""

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
    set_all(op, completed(get(op), [owner.type for owner in owners], {_index(owner): sharding}))


def _get_result(op: Operation, result: SSAValue) -> TensorSharding | None:
    return result_shardings(op)[_index(result)]


def _set_result(op: Operation, result: SSAValue, sharding: TensorSharding) -> None:
    if len(op.results) == 1:
        op.attributes[SHARDING] = TensorShardingPerValueAttr.of((sharding,))
    else:
        set_result_shardings(op, completed(result_shardings(op), op.result_types, {_index(result): sharding}))


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
    """That of operations of this class: shardings are asked for too often to look for it each time."""
    for base, accessor in _ACCESSORS.items():
        if issubclass(op_class, base):
            return accessor
    return _EDGE_OWNER if op_class.has_trait(ShardableDataFlow, value_if_unregistered=False) else _RESULT


def keeps_shardings_of_results(op_class: type[Operation]) -> bool:
    """Whether operations of this class keep the sharding of each result in `sdy.sharding`, as most do."""
    return _accessor_of(op_class) is _RESULT


def get_sharding_behind_barriers(value: SSAValue) -> TensorSharding | None:
    """The sharding of what `value` is behind any propagation barriers."""
    while isinstance(value, OpResult) and value.op.__class__ is PropagationBarrierOp:
        value = value.op.operands[0]
    return get_sharding(value)


def completed(
    shardings: Sequence[TensorSharding | None], types: Sequence[Attribute], new: dict[int, TensorSharding]
) -> tuple[TensorSharding, ...]:
    """`shardings` of values of `types`, with those of `new` at its indices, and open ones where there are none."""
    mesh = next(iter(new.values())).mesh
    return tuple(
        new.get(index) or old or TensorSharding.replicated_open(mesh, rank(type_))
        for index, (old, type_) in enumerate(zip(shardings, types, strict=True))
    )


def has_result_shardings(op: Operation) -> bool:
    """Whether `op` keeps shardings of its results in `sdy.sharding`."""
    return SHARDING in op.attributes


def result_shardings(op: Operation) -> tuple[TensorSharding | None, ...]:
    """The sharding that `sdy.sharding` gives each result of `op`, None for each where there is no such attribute."""
    attribute = op.attributes.get(SHARDING)
    if isinstance(attribute, TensorShardingPerValueAttr):
        return attribute.data
    return (None,) * len(op.results)


def set_result_shardings(op: Operation, shardings: Sequence[TensorSharding]) -> None:
    """Keep these shardings of the results of `op` in `sdy.sharding`; none at all take the attribute away."""
    if shardings:
        op.attributes[SHARDING] = TensorShardingPerValueAttr.of(tuple(shardings))
    else:
        op.attributes.pop(SHARDING, None)


def func_arg_sharding(func: FuncOp, index: int) -> TensorSharding | None:
    """The sharding of argument `index` of `func`."""
    return _entry(func.arg_attrs, index)


def func_result_sharding(func: FuncOp, index: int) -> TensorSharding | None:
    """The sharding of result `index` of `func`."""
    return _entry(func.res_attrs, index)


def func_arg_shardings(func: FuncOp) -> Sequence[TensorSharding | None]:
    """The sharding of each argument of `func`."""
    return _entries(func.arg_attrs, len(func.function_type.inputs))


def func_result_shardings(func: FuncOp) -> Sequence[TensorSharding | None]:
    """The sharding of each result of `func`."""
    return _entries(func.res_attrs, len(func.function_type.outputs))


def set_func_arg_sharding(func: FuncOp, index: int, sharding: TensorSharding | None) -> None:
    """Give argument `index` of `func` this sharding, or none."""
    _change_entries(func, "arg_attrs", len(func.function_type.inputs), [(index, sharding)])


def set_func_result_sharding(func: FuncOp, index: int, sharding: TensorSharding | None) -> None:
    """Give result `index` of `func` this sharding, or none."""
    _change_entries(func, "res_attrs", len(func.function_type.outputs), [(index, sharding)])


def set_func_arg_shardings(func: FuncOp, shardings: Iterable[TensorSharding | None]) -> None:
    """Give the arguments of `func` these shardings, or none."""
    _change_entries(func, "arg_attrs", len(func.function_type.inputs), enumerate(shardings))


def set_func_result_shardings(func: FuncOp, shardings: Iterable[TensorSharding | None]) -> None:
    """Give the results of `func` these shardings, or none."""
    _change_entries(func, "res_attrs", len(func.function_type.outputs), enumerate(shardings))


def _index(value: SSAValue) -> int:
    return cast(OpResult | BlockArgument, value).index


def _entry(attributes: ArrayAttr[DictionaryAttr] | None, index: int) -> TensorSharding | None:
    return None if attributes is None else _sharding_in(attributes.data[index])


def _entries(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> Sequence[TensorSharding | None]:
    return [None] * count if attributes is None else [_sharding_in(entry) for entry in attributes.data]


def _sharding_in(entry: DictionaryAttr) -> TensorSharding | None:
    # The class of attributes is an abstract one, with which isinstance is slow.
    attribute = _attribute_in(entry)
    return attribute.data if type(attribute) is TensorShardingAttr else None


def _attribute_in(entry: DictionaryAttr) -> Attribute | None:
    # `get` is slow where there is nothing: it is Python, and raises.
    return entry.data[SHARDING] if SHARDING in entry.data else None  # noqa: SIM401


def _change_entries(func: FuncOp, name: str, count: int, changes: Iterable[tuple[int, TensorSharding | None]]) -> None:
    """Change the shardings in the list `name` of dictionaries, one for each of `count` arguments or results."""
    given = cast(ArrayAttr[DictionaryAttr] | None, func.properties.get(name))
    entries = list(given) if given is not None else [_NO_ATTRIBUTES] * count
    for index, sharding in changes:
        new = None if sharding is None else TensorShardingAttr.of(sharding)
        if new is not _attribute_in(entries[index]):
            changed = {**entries[index].data, SHARDING: new}
            entries[index] = DictionaryAttr({name: kept for name, kept in changed.items() if kept is not None})
    if any(entry.data for entry in entries):
        func.properties[name] = ArrayAttr(entries)
    else:
        func.properties.pop(name, None)


_NO_ATTRIBUTES = DictionaryAttr({})
