"""`sdy-reduce-sums-once`: one all-reduce of a sum instead of one of each term."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from functools import reduce
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import erase, replace
from sdy.ir.walking import operations_of
from sdy.passes.common.properties import num_bytes
from sdy.passes.communication.partial_sums import is_linear, reduction_behind
from sdy.passes.communication.predicted_gain import UnlessSlowerPass
from sdy.passes.spmd.emit.communication import reducer
from sdy.passes.spmd.plan.reduction_kinds import region_reduction
from sdy.stablehlo.elementwise import AddOp
from sdy.stablehlo.emitter import Emitter, before
from sdy.stablehlo.reducing_collectives import AllReduceOp, ReduceScatterOp

Reduction: TypeAlias = AllReduceOp | ReduceScatterOp


class ReduceSumsOncePass(UnlessSlowerPass):
    """Add partial sums, and sum over devices once.

    The gradient of what several products read is such a sum, as before the queries, keys and values of attention whose
    heads are sharded. Before::

        %2 = "stablehlo.all_reduce"(%0) ({add}) : (tensor<8xf32>) -> tensor<8xf32>
        %3 = "stablehlo.all_reduce"(%1) ({add}) : (tensor<8xf32>) -> tensor<8xf32>
        %4 = stablehlo.add %2, %3 : tensor<8xf32>

    After::

        %2 = stablehlo.add %0, %1 : tensor<8xf32>
        %3 = "stablehlo.all_reduce"(%2) ({add}) : (tensor<8xf32>) -> tensor<8xf32>

    Other terms of the sum are added afterwards. The same holds for reduce-scatters. Between an all-reduce and the sum
    may be operations that commute with it: casts to wider floats, negations, reshapes, transposes and products of
    floats with constants. Floats are rounded in another order. Unchanged are collectives with further uses, in other
    blocks, along other replica groups or of other kinds, and those that would not be smaller afterwards.

    An all-reduce of one term can run beside the computation of the others: with `hardware`, a preset or a file, or by
    default the module's attribute `sdy.hardware`, nothing is merged if the step then takes longer, as predicted.
    """

    name = "sdy-reduce-sums-once"

    def change(self, module: ModuleOp) -> None:
        for add in operations_of(module, AddOp):
            if not _is_inner(add):
                _reduce_once(add)


def _reduce_once(root: AddOp) -> None:
    """Reduce the terms of a sum that are results of like collectives once."""
    adds, terms = _flattened(root)
    groups: defaultdict[Hashable, dict[SSAValue, Reduction]] = defaultdict(dict)
    for term in terms:
        reduction = _reduction(term)
        if reduction is not None and reduction.parent is root.parent:
            groups[_kind(reduction)][term] = reduction
    merged = [group for group in groups.values() if _pays(group.values(), root)]
    if not merged:
        return
    for group in merged:
        terms = [*(term for term in terms if term not in group), _merge(group, root)]
    replace(root, [reduce(before(root).add, terms)])
    for add in adds[1:]:
        erase(add)
    for reduction in (reduction for group in merged for reduction in group.values()):
        erase(reduction)


def _flattened(root: AddOp) -> tuple[Sequence[AddOp], Sequence[SSAValue]]:
    """Return the additions of a sum of sums, each before those whose results it adds, and its terms in order."""
    adds: list[AddOp] = []
    terms: list[SSAValue] = []
    pending: list[SSAValue] = [root.result]
    while pending:
        value = pending.pop()
        op = value.owner
        if isinstance(op, AddOp) and (op is root or _is_inner(op)):
            adds.append(op)
            pending += reversed(op.operands)
        else:
            terms.append(value)
    return adds, terms


def _is_inner(add: AddOp) -> bool:
    """Return whether the result of an addition is only a term of another one in its block."""
    user = add.result.get_user_of_unique_use()
    return isinstance(user, AddOp) and user.parent is add.parent


def _reduction(term: SSAValue) -> Reduction | None:
    """Return the collective whose sum over devices a term is."""
    op = term.owner
    if not isinstance(op, ReduceScatterOp):
        return reduction_behind(term)
    is_sum = region_reduction(op.computation) == "sum" and is_linear(op.operand)
    return op if is_sum and term.has_one_use() else None


def _kind(reduction: Reduction) -> Hashable:
    """Return a key that is equal for collectives that may be merged."""
    properties = {name: value for name, value in reduction.properties.items() if name != "channel_handle"}
    return type(reduction), *properties.items()


def _pays(reductions: Collection[Reduction], root: AddOp) -> bool:
    total = num_bytes(root.result.type)
    return len(reductions) > 1 and total < sum(num_bytes(each.results[0].type) for each in reductions)


def _merge(group: dict[SSAValue, Reduction], root: AddOp) -> SSAValue:
    """Return the result of one collective of the sum of partial terms."""
    partial: list[SSAValue] = []
    for term, reduction in group.items():
        [operand], [result] = reduction.operands, reduction.results
        partial.append(operand if term is result else term)
        if isinstance(reduction, AllReduceOp):
            result.replace_all_uses_with(operand)
    first = next(iter(group.values()))
    total = reduce(before(root).add, partial)
    result_type = total.type if isinstance(first, AllReduceOp) else first.results[0].type
    moved = type(first).create(
        operands=[total],
        result_types=[result_type],
        properties=first.properties,
        attributes=first.attributes,
        regions=[reducer(total, "sum")],
    )
    return Emitter(InsertPoint.before(root), first).insert(moved)
