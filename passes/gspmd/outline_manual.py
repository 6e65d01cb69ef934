"""Outlining of manual parts, to which JAX lowers `shard_map` for GSPMD, into manual computations."""

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from sdy.axes import total_size
from sdy.diagnostics import error
from sdy.dialect.ops import ManualComputationOp, ReturnOp
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.ir.editing import erase, insert
from sdy.ir.shapes import shape
from sdy.ir.walking import innermost_first, invalidate, nesting_operations
from sdy.passes.gspmd.calls import inline_calls_in
from sdy.passes.gspmd.manual_parts import ManualPart, manual_parts, op_index
from sdy.passes.gspmd.named_shardings import NamedShardings
from sdy.passes.gspmd.sharding_texts import FULL_TO_SHARD, SHARDING_CALL, is_call
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.custom_call import CustomCallOp


def outline_manual_parts(module: ModuleOp, named: NamedShardings) -> None:
    """Outline each manual part of `module` into an `sdy.manual_computation`, and inline its calls.

    Raises:
        DiagnosticError: If a manual part cannot be outlined, or its shardings are unknown.
    """
    computations = [
        _outline(part, named)
        for op in innermost_first(nesting_operations(module))
        for region in op.regions
        for block in region.blocks
        for part in manual_parts(block)
    ]
    inline_calls_in(computations, module)


def _outline(part: ManualPart, named: NamedShardings) -> ManualComputationOp:
    begins, last = list(part.begins), part.last
    assert last.parent is not None
    for end in part.ends:
        for use in end.results[0].uses:
            user = last.parent.find_ancestor_op_in_block(use.operation)
            if user is not None and op_index(user) < op_index(last):
                raise error(use.operation, "uses a result of a manual part before the end of that part")
    axes = _manual_axes(part, named)
    in_shardings = [_sharding(begin, begin.inputs[0], axes, named) for begin in begins]
    out_shardings = [_sharding(end, end.results[0], axes, named) for end in part.ends]
    block = Block(arg_types=[begin.results[0].type for begin in begins])
    body = Region(block)
    operands = [_before_constraint(begin) for begin in begins]
    returned = ReturnOp(*(end.inputs[0] for end in part.ends))
    computation = ManualComputationOp(
        operands, body, [end.results[0].type for end in part.ends], in_shardings, out_shardings, axes
    )
    computation.location = last.location
    insert(computation, InsertPoint.before(last))
    _fill(block, part, returned)
    invalidate()
    for end, result in zip(part.ends, computation.outputs, strict=True):
        end.results[0].replace_all_uses_with(result)
        erase(end)
    before = [begin.inputs[0].owner for begin in begins]
    _erase_unused([*part.free, *(maker for maker in before if is_call(maker, SHARDING_CALL)), *begins])
    return computation


def _fill(block: Block, part: ManualPart, returned: ReturnOp) -> None:
    """Move the operations of `part` to `block`, copying those with other uses."""
    inside: dict[SSAValue, SSAValue] = {
        begin.results[0]: argument for begin, argument in zip(part.begins, block.args, strict=True)
    }
    for begin, argument in zip(part.begins, block.args, strict=True):
        argument.location = begin.location
    for free in part.free:
        block.add_op(free.clone(inside))
    for op in part.inner:
        op.detach()
        block.add_op(op)
    block.add_op(returned)
    for op in [op for top in (*part.inner, returned) for op in top.walk()]:
        op.operands = [inside.get(value, value) for value in op.operands]


def _erase_unused(ops: Iterable[Operation]) -> None:
    for op in sorted(dict.fromkeys(ops), key=op_index, reverse=True):
        if all(result.first_use is None for result in op.results):
            erase(op)


def _before_constraint(begin: CustomCallOp) -> SSAValue:
    """Return the input of `begin`, looking through a constraint with no other use, which the computation implies."""
    value = begin.inputs[0]
    is_alone = len([*value.uses]) == 1
    return value.owner.inputs[0] if is_alone and is_call(value.owner, SHARDING_CALL) else value


def _manual_axes(part: ManualPart, named: NamedShardings) -> tuple[str, ...]:
    manual_calls: dict[tuple[str, ...], Operation] = {}
    for call in (*part.begins, *(end.inputs[0].owner for end in part.ends)):
        if is_call(call, FULL_TO_SHARD) or is_call(call, SHARDING_CALL):
            sharding = named.texts.one_in(call.attributes, call)
            if sharding is not None and sharding.kind != "unknown":
                manual_calls.setdefault(named.manual_axes(sharding), call)
    if len(manual_calls) > 1:
        one, other = list(manual_calls)[:2]
        raise error(
            manual_calls[other], f"is manual along {', '.join(other)}, but its manual part along {', '.join(one)}"
        )
    return next(iter(manual_calls), named.meshes[0].axis_names)


def _sharding(call: CustomCallOp, full: SSAValue, axes: tuple[str, ...], named: NamedShardings) -> TensorSharding:
    """Return the sharding of `full`, which `call` converts to or from its local shard."""
    known = named.texts.of_value(full)
    if known is None:
        known = HloSharding("replicated"), frozenset[int]()
    sharding = named.sharding(known[0], full.type, call, known[1])
    mesh = named.mesh(known[0])
    dims = [_manual_axes_leading(dim, axes) for dim in sharding.dims]
    sharding = replace(sharding, dims=tuple(dims))
    local = call.results[0] if full is call.inputs[0] else call.inputs[0]
    shards = [total_size((axis for axis in dim.axes if axis.name in axes), mesh) for dim in dims]
    expected = tuple(size // count for size, count in zip(shape(full.type), shards, strict=True))
    if expected != shape(local.type):
        raise error(
            call,
            f"the local shard '{local.type}' of '{full.type}' does not match its operand's sharding, which gives "
            f"{'x'.join(map(str, expected))}: specify the sharding by a custom call @{SHARDING_CALL} before it",
        )
    return sharding


def _manual_axes_leading(dim: DimSharding, manual: tuple[str, ...]) -> DimSharding:
    """Return `dim`, or only its manual axes if others precede these, which a manual computation cannot express."""
    own = tuple(axis for axis in dim.axes if axis.name in manual)
    return dim if own == dim.axes[: len(own)] else replace(dim, axes=own, is_closed=False)
