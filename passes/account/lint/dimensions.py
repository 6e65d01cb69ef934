"""Dimensions that operations contract, their trace through sharding rules back to the arguments, and their fixes."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from sdy.axes import AxisRef
from sdy.dialect.axis_syntax import axes_text
from sdy.dialect.ops import ReshardOp
from sdy.ir.shapes import shape_of
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.candidates import Candidates
from sdy.passes.account.lint.edits import Cure, LazyCures, value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.common.call_graph import functions
from sdy.rule import OpShardingRule, factors_in
from sdy.rules.registry import sharding_rule
from sdy.stablehlo.control_flow import OptimizationBarrierOp

_MANY = 2
"""The number of products that stands for any larger one."""


@dataclass(frozen=True)
class Dimension:
    """Dimension `index` of `tensor`."""

    tensor: SSAValue
    index: int
    products: int = 0
    """The number of products and convolutions between it and the dimension that is traced back to it, at most two."""

    @property
    def axes(self) -> tuple[AxisRef, ...]:
        """The axes that shard the dimension."""
        return value_dims(self.tensor)[self.index]


def contracted(op: Operation, axes: Sequence[str]) -> Iterator[Dimension]:
    """Yield the dimensions of operands that an operation contracts and that `axes` shard."""
    rule = sharding_rule(op)
    for operand, mapping in zip(op.operands, rule.operands, strict=True) if rule else ():
        for index, factors in enumerate(mapping):
            dimension = Dimension(operand, index)
            is_summed = rule is not None and not factors_in(((factors,),)).isdisjoint(rule.reduction)
            if is_summed and not {axis.name for axis in dimension.axes}.isdisjoint(axes):
                yield dimension


def sharded(op: Operation, axes: Sequence[str]) -> Iterator[Dimension]:
    """Yield the dimensions of the operands of an operation that `axes` shard."""
    for operand in op.operands:
        for index, shards in enumerate(value_dims(operand)):
            if any(axis.name in axes for axis in shards):
                yield Dimension(operand, index)


def sources(
    program: LintedProgram, dimension: Dimension, known: Container[Dimension] = (), *, most_products: int = _MANY
) -> Iterator[Dimension]:
    """Yield `dimension` and the dimensions that its major factor comes from, back to the arguments of `main`.

    Args:
        program: The program.
        dimension: The dimension to start from.
        known: Dimensions that are not followed.
        most_products: The number of products and convolutions that a dimension is traced through.
    """
    bodies = {function.sym_name.data: function for function in functions(program.module)}
    seen: set[Dimension] = set()
    pending = [dimension]
    while pending:
        at = pending.pop()
        if at not in seen and at not in known and at.products <= most_products:
            seen.add(at)
            yield at
            pending += _before(program, at, bodies)


class Origins:
    """The dimensions of arguments of `main` that the major factors of dimensions come from.

    Each traced dimension keeps its own: most traces of a program lead through the same layers.
    """

    def __init__(self, program: LintedProgram, most_products: int = _MANY) -> None:
        self._program = program
        self._most_products = most_products
        self._bodies = {function.sym_name.data: function for function in functions(program.module)}
        self._known: dict[Dimension, tuple[Dimension, ...]] = {}

    def of(self, dimension: Dimension) -> Sequence[Dimension]:
        """Return the dimensions of arguments, each once."""
        pending = [(dimension, self._before(dimension))]
        while pending:
            at, before = pending[-1]
            if unknown := [each for each in before if each not in self._known]:
                pending += [(each, self._before(each)) for each in unknown]
                continue
            pending.pop()
            own = [at] if at.tensor.owner is self._program.main.body.block else []
            self._known[at] = tuple(dict.fromkeys([*own, *(found for each in before for found in self._known[each])]))
        return self._known[dimension]

    def _before(self, at: Dimension) -> Sequence[Dimension]:
        before = _before(self._program, at, self._bodies)
        return [each for each in before if each.products <= self._most_products]


def _before(program: LintedProgram, at: Dimension, bodies: dict[str, FuncOp]) -> Iterator[Dimension]:
    owner = at.tensor.owner
    if isinstance(owner, Block):
        assert isinstance(at.tensor, BlockArgument)
        if (incoming := program.use_def.incoming(at.tensor)) is not None:
            yield Dimension(incoming, at.index, at.products)
        return
    result = owner.results.index(at.tensor)
    if isinstance(owner, CallOp):
        end = bodies[owner.callee.root_reference.data].get_return_op()
        if end is not None:
            yield Dimension(end.operands[result], at.index, at.products)
        return
    if isinstance(owner, ReshardOp | OptimizationBarrierOp):
        yield Dimension(owner.operands[result], at.index, at.products)
        return
    rule = sharding_rule(owner)
    if rule is None:
        return
    major = rule.results[result][at.index][:1]
    products = min(at.products + _is_product(rule), _MANY)
    for operand, mapping in zip(owner.operands, rule.operands, strict=True):
        for index, factors in enumerate(mapping):
            if factors[:1] == major:
                yield Dimension(operand, index, products)


def _is_product(rule: OpShardingRule) -> bool:
    """Return true if the rule contracts a factor that two operands share."""
    summed = [{*rule.reduction} & factors_in((mapping,)) for mapping in rule.operands]
    return any(first & second for first, second in combinations(summed, 2))


def suspicion_of(
    program: LintedProgram,
    at: Dimension,
    collectives: Sequence[Collective],
    cures: Callable[[], Iterable[Cure]],
    how: str = "",
) -> Suspicion:
    """Return the match of a rule that finds sums over devices for products that contract a dimension.

    Args:
        program: The program.
        at: The dimension, of an argument or of the initial value of a loop's state.
        collectives: The sums.
        cures: Lists the fixes to try.
        how: How often devices sum, such as ` in each step`.
    """
    product = max(collectives, key=lambda each: each.bytes).source
    assert product is not None
    return Suspicion(
        product,
        f"{product.name} contracts dimension {at.index} of {program.called(at.tensor)}, {at.tensor.type}, which "
        f"{axes_text(at.axes)} shards: devices sum its result, {product.results[0].type}{how}",
        "",
        [GivenBy(at.tensor, at.axes)],
        received=sum(each.bytes for each in collectives),
        collectives=[each.op for each in collectives],
        cures=LazyCures(lambda: [*dict.fromkeys(cures())]),
    )


def moved_alike(
    program: LintedProgram, candidates: Candidates, argument: BlockArgument, at: Dimension
) -> Iterator[Cure]:
    """Yield layouts of the arguments like one that split another dimension, with the other tensors of the factor open.

    The other tensors are the arguments with a dimension of the size of `at` that the same axes shard.
    """
    alike, size = candidates.alike(argument), shape_of(at.tensor)[at.index]
    others = [
        candidates.shard(each, None)
        for each in program.main.args
        if each not in alike
        and any(
            axes == at.axes and length == size for axes, length in zip(value_dims(each), shape_of(each), strict=True)
        )
    ]
    for dims in candidates.moved(argument, value_dims(argument)):
        yield Cure((*(candidates.shard(each, dims) for each in alike), *others))
