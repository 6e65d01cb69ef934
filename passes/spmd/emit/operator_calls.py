"""Lowering of annotated operator calls to calls on one device's shards.

Where 7 rows are split over 4 devices and the function must not see padding, each device calls it with 2 rows or 1::

    %0 = stablehlo.custom_call @f(%x, %w) {sdy.operator = "padded(f(), operands=((7, 3), (3,)), results=((3,),))"}

on unpartitioned tensors of 8 rows becomes::

    %0 = "stablehlo.case"(%branch) ({
      %1 = stablehlo.custom_call @f(%x, %w) {sdy.operator = "f()"} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3xf32>
      stablehlo.return %1 : tensor<3xf32>
    }, {
      %1 = stablehlo.custom_call @f(%x, %w) {sdy.operator = "padded(f(), operands=((1, 3), (3,)), results=((3,),))"} ...
      stablehlo.return %1 : tensor<3xf32>
    })

A device without elements has a branch that returns zeros.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint

from sdy.axes import Axes
from sdy.dialect.attributes import OPERATOR, SHARDING_RULE, OpShardingRuleAttr
from sdy.ir.shapes import tensor_of
from sdy.operators.call import OperatorCall
from sdy.operators.registry import operator_of
from sdy.operators.transforms import Padded
from sdy.passes.spmd.emit.op_conversion import OpConversion, PaddedConversion
from sdy.passes.spmd.plan.operator_parts import OperatorParts, counts_of_parts, factor_axes
from sdy.rule import FactorKind
from sdy.sharding import DimSharding, TensorSharding
from sdy.stablehlo.checks.shape_checks import elements_of, tensor_type
from sdy.stablehlo.control_flow import CaseOp, ReturnOp
from sdy.stablehlo.emitter import Emitter

if TYPE_CHECKING:
    from sdy.operators.operator import Operator
    from sdy.operators.rules import OperatorRule
    from sdy.operators.shapes import Shape


def pad_operator(conversion: PaddedConversion[Operation], call: OperatorCall) -> bool:
    """Rewrite an operator call for padded tensors, on which the function sees the padding only if it may.

    Returns:
        False, without changes, if the call must be replicated.
    """
    if not conversion.carries(FactorKind.REDUCTION):
        return False
    operands, results = (
        [layout.padded_shape for layout in layouts] for layouts in (conversion.operands, conversion.results)
    )
    padded = call.then(Padded(tuple(layout.shape for layout in conversion.operands), tuple(results)))
    parts = _parts_of_padded(conversion.conversion, padded, operands, results)
    if parts.refused():
        return False
    if not parts.sees_padding:
        counts = counts_of_parts(parts.rule, parts.axes, parts.mesh)
        padded = call.with_sizes({name: size * counts[name] for name, size in parts.sizes.items()})
    conversion.op.attributes[OPERATOR] = StringAttr(str(padded))
    conversion.op.attributes[SHARDING_RULE] = OpShardingRuleAttr(parts.rule.rule)
    return True


def lower_operator(conversion: OpConversion[Operation], call: OperatorCall) -> None:
    """Rewrite an operator call for the shapes of a device's shards."""
    operands, results = ([layout.shape for layout in layouts] for layouts in (conversion.operands, conversion.results))
    if call.transforms and isinstance(call.transforms[-1], Padded):
        _call_without_padding(conversion, _parts_of_padded(conversion, call, operands, results))
    else:
        rule = _operator(call).rule(call, operands, results)
        parts = OperatorParts.least_padded(_operator(call), call, rule, (), _axes(conversion, rule), conversion.mesh)
        conversion.op.attributes[OPERATOR] = StringAttr(str(call.with_sizes(parts.sizes)))


def _call_without_padding(conversion: OpConversion[Operation], parts: OperatorParts) -> None:
    """Replace the call by a case over the devices: a call on the shard without padding, or zeros if it is empty."""
    lengths = [None if 0 in each.values() else each for each in parts.lengths_by_device()]
    branches = [each for index, each in enumerate(lengths) if each not in lengths[:index]]
    emit = conversion.before()
    index = emit.reshape(emit.entry_of_device([branches.index(each) for each in lengths], i32), ())
    regions = [Region(_branch(conversion, parts, each)) for each in branches]
    case = CaseOp.create(operands=[index], regions=regions, result_types=conversion.op.result_types)
    emit.insert(case)
    conversion.replace(*case.results)


def _branch(conversion: OpConversion[Operation], parts: OperatorParts, lengths: Mapping[str, int] | None) -> Block:
    """Build the branch that calls the operator on shards of these lengths, or returns zeros if None."""
    block = Block()
    emit = Emitter(InsertPoint.at_end(block), conversion.op)
    if lengths is None:
        block.add_op(ReturnOp(*(emit.filled(tensor_type(result), 0) for result in conversion.op.results)))
        return block
    sizes = {**parts.sizes, **lengths}
    call = parts.call.with_sizes(sizes)
    count = len(conversion.operands)
    if sizes != parts.sizes:
        call = call.then(Padded(parts.shapes(sizes)[:count], parts.shapes(parts.sizes)[count:]))
    local = conversion.op.clone()
    local.attributes[OPERATOR] = StringAttr(str(call))
    block.add_ops([local, ReturnOp(*local.results)])
    return block


def _parts_of_padded(
    conversion: OpConversion[Operation], padded: OperatorCall, operands: Sequence["Shape"], results: Sequence["Shape"]
) -> OperatorParts:
    """Return the shards of a call on padded tensors of these shapes."""
    operator, call = _operator(padded), padded.before()
    transform = padded.transforms[-1]
    assert isinstance(transform, Padded)
    rule = operator.rule(padded, operands, results)
    axes = _axes(conversion, rule)
    counts = counts_of_parts(rule, axes, conversion.mesh)
    sizes = {name: rule.rule.factor_sizes[factor] // counts[name] for name, factor in rule.factors.items()}
    fitted = operator.fit_call(call, transform.operands)
    types = [
        tensor_of(elements_of(layout.type), shape)
        for layout, shape in zip(conversion.operands, transform.operands, strict=True)
    ]
    return OperatorParts(operator, call, rule, types, axes, conversion.mesh, fitted.sizes, sizes)


def _axes(conversion: OpConversion[Operation], rule: "OperatorRule") -> Sequence[Axes]:
    shardings = [TensorSharding(conversion.mesh, tuple(map(DimSharding, layout.axes))) for layout in conversion.layouts]
    return factor_axes(rule, shardings, conversion.mesh)


def _operator(call: OperatorCall) -> "Operator":
    operator = operator_of(call)
    assert operator is not None
    return operator
