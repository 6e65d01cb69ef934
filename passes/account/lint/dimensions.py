"""Dimensions that operations contract, and their trace through sharding rules back to the arguments."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.ops import ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.passes.account.lint.edits import dims_of
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.call_graph import functions
from sdy.rule import OpShardingRule, factors_in
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.control_flow import OptimizationBarrierOp


@dataclass(frozen=True)
class Dimension:
    """Dimension `index` of `tensor`."""

    tensor: SSAValue
    index: int
    is_behind_product: bool = False
    """True if the tensor is an operand of a product or a convolution, directly or through other operations."""

    @property
    def axes(self) -> tuple[AxisRef, ...]:
        """The axes that shard the dimension."""
        return dims_of(get_sharding(self.tensor), self.tensor)[self.index]


def contracted(op: Operation, axes: Sequence[str]) -> Iterator[Dimension]:
    """Yield the dimensions of operands that an operation contracts and that `axes` shard."""
    rule = sharding_rule(op)
    for operand, mapping in zip(op.operands, rule.operands, strict=True) if rule else ():
        for index, factors in enumerate(mapping):
            dimension = Dimension(operand, index)
            is_summed = rule is not None and not factors_in(((factors,),)).isdisjoint(rule.reduction)
            if is_summed and not {axis.name for axis in dimension.axes}.isdisjoint(axes):
                yield dimension


def sources(
    program: LintedProgram, dimension: Dimension, known: Container[Dimension] = (), *, through_products: bool = True
) -> Iterator[Dimension]:
    """Yield `dimension` and the dimensions that its major factor comes from, back to the arguments of `main`.

    Args:
        program: The program.
        dimension: The dimension to start from.
        known: Dimensions that are not followed.
        through_products: Follow the operands of products and convolutions too.
    """
    bodies = {function.sym_name.data: function for function in functions(program.module)}
    seen: set[Dimension] = set()
    pending = [dimension]
    while pending:
        at = pending.pop()
        if at not in seen and at not in known and (through_products or not at.is_behind_product):
            seen.add(at)
            yield at
            pending += _before(program, at, bodies)


def _before(program: LintedProgram, at: Dimension, bodies: dict[str, FuncOp]) -> Iterator[Dimension]:
    owner = at.tensor.owner
    if isinstance(owner, Block):
        assert isinstance(at.tensor, BlockArgument)
        if (incoming := program.use_def.incoming(at.tensor)) is not None:
            yield Dimension(incoming, at.index, at.is_behind_product)
        return
    result = owner.results.index(at.tensor)
    if isinstance(owner, CallOp):
        end = bodies[owner.callee.root_reference.data].get_return_op()
        if end is not None:
            yield Dimension(end.operands[result], at.index, at.is_behind_product)
        return
    if isinstance(owner, ReshardOp | OptimizationBarrierOp):
        yield Dimension(owner.operands[result], at.index, at.is_behind_product)
        return
    rule = sharding_rule(owner)
    if rule is None:
        return
    major = rule.results[result][at.index][:1]
    is_behind_product = at.is_behind_product or _is_product(rule)
    for operand, mapping in zip(owner.operands, rule.operands, strict=True):
        for index, factors in enumerate(mapping):
            if factors[:1] == major:
                yield Dimension(operand, index, is_behind_product)


def _is_product(rule: OpShardingRule) -> bool:
    """Return true if the rule contracts a factor that two operands share."""
    summed = [{*rule.reduction} & factors_in((mapping,)) for mapping in rule.operands]
    return any(first & second for first, second in combinations(summed, 2))
