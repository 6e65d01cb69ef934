"""Placement: the values of a program that are stored in host memory instead of device memory.

JAX marks an argument or result with the attribute `mhlo.memory_kind`, and moves other values with a custom call of
`annotate_device_placement` (`jax.device_put` to a memory kind or memory space, and the offloading policies of
`jax.checkpoint`). A slice or a reshape of a value on the host is on the host too, as is a buffer that is updated with
such a value, for example the stacked results of a scan.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.func import ReturnOp as FuncReturnOp
from xdsl.ir import Attribute, Operation, SSAValue, Use

from sdy.dialect.ops import ReshardOp
from sdy.ir.shapes import num_elements
from sdy.ir.walking import operations, operations_of
from sdy.passes.common.call_graph import callee, calls_in, find_main_function
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.in_place import PLACEMENT, in_place, is_placement
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.control_flow import CaseOp, IfOp, OptimizationBarrierOp, ReturnOp, WhileOp
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.shape import ReshapeOp, TransposeOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp

HOST, DEVICE = "pinned_host", "device"
"""Memory kinds of jax."""

_HOST = {HOST, "unpinned_host"}
_MEMORY_KIND = "mhlo.memory_kind"
_FRONTEND_ATTRIBUTES, _PLACEMENT = "mhlo.frontend_attributes", "_xla_buffer_placement"
_VIEWS = DynamicSliceOp | OptimizationBarrierOp | ReshapeOp | ReshardOp | SliceOp | TransposeOp
_UPDATED, _UPDATE = range(2)
"""Operand indices of `dynamic_update_slice`."""
_NOTHING: Set[SSAValue] = frozenset()


def host_values(module: ModuleOp) -> Set[SSAValue]:
    """Return the values of `module` that are stored in host memory."""
    marked = [*_marked(module)]
    return _Placement(module).reached(marked) if marked else _NOTHING


def moved_to(kind: str, value: SSAValue) -> CustomCallOp:
    """Return an operation that moves `value` to the memory `kind`, as JAX's offloading policies do."""
    move = CustomCallOp.create(
        operands=[value],
        result_types=[value.type],
        properties={
            "call_target_name": StringAttr(PLACEMENT),
            "has_side_effect": BoolAttr.from_bool(True),
            "backend_config": StringAttr(""),
        },
        attributes={_FRONTEND_ATTRIBUTES: DictionaryAttr({_PLACEMENT: StringAttr(kind)})},
    )
    if isinstance(value.owner, Operation):
        move.location = value.owner.location
    return move


def leaves_device(op: Operation) -> bool:
    """Return whether `op` moves its operand to host memory."""
    return is_placement(op) and _is_host(_entry(op.attributes.get(_FRONTEND_ATTRIBUTES), _PLACEMENT))


def takes_host_memory(value: SSAValue) -> bool:
    """Return whether a value on the host has its own buffer: it is no view and is not written to a larger buffer."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return True
    return not (_is_view(owner) or (is_placement(owner) and all(map(_is_update, value.uses))))


def _is_update(use: Use) -> bool:
    """Return whether a use writes the value, or a view of it, into a buffer."""
    op = use.operation
    if isinstance(op, DynamicUpdateSliceOp):
        return use.index == _UPDATE
    result = op.results[use.index] if isinstance(op, OptimizationBarrierOp) else op.results[0] if op.results else None
    return _is_view(op) and result is not None and all(map(_is_update, result.uses))


def _is_view(op: Operation) -> bool:
    """Return whether the result is a view of the operand, such as a slice, reshape or transpose."""
    if isinstance(op, BroadcastInDimOp):
        return num_elements(op.result) == num_elements(op.operand)
    return isinstance(op, _VIEWS)


def _marked(module: ModuleOp) -> Iterator[SSAValue]:
    """Yield the arguments and results of the main function, and the moved values, that JAX marks as on the host."""
    if (main := find_main_function(module)) is not None and not main.is_declaration:
        yield from _with_host_kind(main.args, main.arg_attrs)
        if (end := main.get_return_op()) is not None:
            yield from _with_host_kind(end.operands, main.res_attrs)
    for op in operations_of(module, CustomCallOp):
        if leaves_device(op):
            yield from op.results


def _with_host_kind(values: Iterable[SSAValue], attributes: ArrayAttr[DictionaryAttr] | None) -> Iterator[SSAValue]:
    return (
        value for value, entry in zip(values, attributes or (), strict=False) if _is_host(_entry(entry, _MEMORY_KIND))
    )


def _entry(attributes: Attribute | None, name: str) -> Attribute | None:
    return attributes.data.get(name) if isinstance(attributes, DictionaryAttr) else None


def _is_host(kind: Attribute | None) -> bool:
    return isinstance(kind, StringAttr) and kind.data in _HOST


class _Placement:
    """Data-flow analysis of host placement through views, updated buffers, loops, branches and calls."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._symbols = Symbols(module)
        self._calls: dict[FuncOp, list[CallOp]] = {}
        for call in calls_in(module):
            self._calls.setdefault(callee(call, self._symbols), []).append(call)
        self._host: set[SSAValue] = set()

    def reached(self, marked: Iterable[SSAValue]) -> Set[SSAValue]:
        """Return all values on the host: those that `marked` flow to, and the initial values of buffers there."""
        self._follow(marked)
        reused = Counter(value for op in operations(self._module) for value in self._initial_values(op))
        self._host.update(value for value, uses in reused.items() if uses == len([*value.uses]))
        return self._host

    def _follow(self, marked: Iterable[SSAValue]) -> None:
        pending = [*marked]
        while pending:
            value = pending.pop()
            if value not in self._host:
                self._host.add(value)
                pending += [target for use in value.uses for target in self._flows_to(use)]

    def _flows_to(self, use: Use) -> Iterable[SSAValue]:
        """Return the values that are in the same memory as the used value."""
        op, index = use.operation, use.index
        match op:
            case OptimizationBarrierOp():
                return (op.results[index],)
            case DynamicUpdateSliceOp():
                return op.results if index in (_UPDATED, _UPDATE) else ()
            case WhileOp():
                return self._carried(op, index)
            case ReturnOp():
                around = op.parent_op()
                if isinstance(around, WhileOp) and op.parent is around.body.block:
                    return self._carried(around, index)
                return (around.results[index],) if isinstance(around, IfOp | CaseOp) else ()
            case CallOp():
                return (callee(op, self._symbols).body.block.args[index],)
            case FuncReturnOp():
                function = op.parent_op()
                calls = self._calls.get(function, ()) if isinstance(function, FuncOp) else ()
                return [call.results[index] for call in calls]
            case _:
                return op.results if index == 0 and _is_view(op) else ()

    def _carried(self, loop: WhileOp, index: int) -> Iterable[SSAValue]:
        return loop.cond.block.args[index], loop.body.block.args[index], loop.results[index]

    def _initial_values(self, op: Operation) -> Iterator[SSAValue]:
        """Yield the computed operands whose buffers `op` reuses for a value on the host, once for each use."""
        for operand, result in () if is_placement(op) else in_place(op):
            if result in self._host and isinstance(operand.owner, Operation):
                yield operand
