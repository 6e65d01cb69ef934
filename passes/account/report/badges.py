"""Badges of collectives: the reason that a good layout has each of them, by the first row of a table that matches."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import BlockArgument, SSAValue

from sdy.dialect.ops import ManualComputationOp, ReshardOp
from sdy.dialect.shardings import get_sharding
from sdy.ir.shapes import is_static_tensor, shape
from sdy.passes.account.causes import Purpose
from sdy.passes.account.collectives import Collective
from sdy.passes.account.lint.use_def import UseDefChains
from sdy.passes.common.call_graph import main_function

_BACKWARD = "transpose("
"""Part of JAX's names of the operations that compute gradients."""


class Arguments:
    """The arguments of a program, as its operations use them: cast, sliced, or in a loop."""

    def __init__(self, module: ModuleOp) -> None:
        self._main = main_function(module)
        self._use_def = UseDefChains(module)

    def of(self, value: SSAValue) -> BlockArgument | None:
        """Return the argument that `value` is, or is a slice or a copy of."""
        for each in self._use_def.trace(value):
            if isinstance(each, BlockArgument) and each.block is self._main.body.block:
                return each
        return None

    @cached_property
    def parameters(self) -> Set[SSAValue]:
        """The arguments with the type of a result: a training step returns each parameter."""
        types = {*self._main.function_type.outputs}
        return {each for each in self._main.args if each.type in types}

    @cached_property
    def gradients(self) -> Set[tuple[int, ...]]:
        """The sorted lengths of the gradients of the parameters, and of one layer of each."""
        shapes = [shape(each.type) for each in self.parameters if is_static_tensor(each.type)]
        return {_lengths(each) for whole in shapes for each in (whole, whole[1:]) if each}


@dataclass(frozen=True)
class Badge:
    """A row of the table: a name, an explanation, and a predicate of collectives."""

    name: str
    text: str
    matches: Callable[[Collective, Arguments], bool]


def _is_sum(collective: Collective) -> bool:
    return collective.cause is not None and collective.cause.purpose is Purpose.SUM


def _is_gradient(collective: Collective, arguments: Arguments) -> bool:
    op = collective.source
    if not _is_sum(collective) or op is None or _contracts(collective, arguments, arguments.parameters):
        return False
    is_backward = not isinstance(op.location, NameLoc) or _BACKWARD in op.location.desc.data
    return is_backward and any(_lengths(shape(result.type)) in arguments.gradients for result in op.results)


def _contracts(collective: Collective, arguments: Arguments, among: Set[SSAValue] | None = None) -> bool:
    """Return whether the operation reads an argument, of `among` if given, sharded along the collective's axes."""
    for operand in collective.source.operands if collective.source else ():
        argument, sharding = arguments.of(operand), get_sharding(operand)
        axes = {axis.name for dim in (sharding.dims if sharding else ()) for axis in dim.axes}
        if argument is not None and (among is None or argument in among) and axes & {*collective.axes}:
            return True
    return False


def _is_argument_gather(collective: Collective, arguments: Arguments) -> bool:
    tensor = collective.cause.tensor if collective.cause else None
    return collective.kind == "all-gather" and tensor is not None and arguments.of(tensor) is not None


def _is_manual(collective: Collective, _: Arguments) -> bool:
    parent = None if collective.cause else collective.source
    while parent is not None and not isinstance(parent, ManualComputationOp):
        parent = parent.parent_op()
    return parent is not None


def _is_scalar_sum(collective: Collective, _: Arguments) -> bool:
    return _is_sum(collective) and not shape(collective.op.results[0].type)


def _is_constraint(collective: Collective, _: Arguments) -> bool:
    # Propagation makes constraints explicit reshards.
    return collective.cause is not None and isinstance(collective.cause.operation, ReshardOp)


BADGES: Sequence[Badge] = (
    Badge("shard_map", "The program itself has it, in a shard_map.", _is_manual),
    Badge("scalar sum", "Each device has its part of a sum over all elements, such as a loss.", _is_scalar_sum),
    Badge("gradient sum", "Each device has the gradient of a parameter for its part of the batch.", _is_gradient),
    Badge(
        "tensor-parallel sum",
        "Each device has its part of an argument, such as a weight, and of the activations that it multiplies.",
        lambda collective, arguments: _is_sum(collective) and _contracts(collective, arguments),
    ),
    Badge(
        "partial sum",
        "The operation sums over a sharded dimension of intermediate values.",
        lambda collective, _: _is_sum(collective),
    ),
    Badge("constraint", "A sharding constraint of the program asks for this sharding.", _is_constraint),
    Badge("FSDP gather", "An argument, such as a weight, is stored sharded and gathered for use.", _is_argument_gather),
    Badge(
        "halo exchange",
        "The operation reads neighboring elements, at the borders of each shard.",
        lambda collective, _: collective.cause is None and collective.kind == "collective-permute",
    ),
    Badge("exchange", "The operation reads elements of other devices.", lambda collective, _: collective.cause is None),
    Badge("layout change", "Two operations need different shardings of a tensor.", lambda collective, _: True),
)
"""The badges; the first that matches a collective is its badge."""


def badge_of(collective: Collective, arguments: Arguments) -> int:
    """Return the number of the badge of a collective."""
    return next(number for number, badge in enumerate(BADGES) if badge.matches(collective, arguments))


def _lengths(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return the sorted lengths without those of 1: a gradient may be transposed before it is added."""
    return tuple(sorted(length for length in lengths if length > 1))
