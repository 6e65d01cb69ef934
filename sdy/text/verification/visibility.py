"""Dominance and isolation: a definition dominates its uses, and no use crosses an operation isolated from above."""

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import ForwardDeclaredValue
from xdsl.traits import IsolatedFromAbove, NoTerminator

from sdy.diagnostics import DiagnosticError, error, op_error
from sdy.ir.fast_access import operands_of
from sdy.ir.walking import operations_in_block


class _Scope:
    """The operations of a region, and the values that go out of scope after the last of them."""

    def __init__(self, visible: set[int], region: Region | None = None, finished: Operation | None = None):
        self.visible = visible
        """The identities of the visible values: `id` hashes faster than the values, which outlive the check."""
        self.defined: list[int] = []
        self.ops = self._ops(region)
        self.finished = finished
        """The operation whose results become visible when this scope ends."""

    def define(self, values: Sequence[SSAValue]) -> None:
        ids = list(map(id, values))
        self.visible.update(ids)
        self.defined += ids

    def _ops(self, region: Region | None) -> Iterator[Operation]:
        for block in () if region is None else region.blocks:
            self.define(block.args)
            yield from operations_in_block(block)


def check_visibility(top: Operation) -> None:
    """Check that each operation in `top` sees the values that it uses.

    Operations nested in an isolated operation inside `top` are skipped. Between blocks of the same region every use is
    accepted: dominance along the control flow is not computed.

    Raises:
        DiagnosticError: At the first operation that uses a value it cannot see.
    """
    scopes = _nested_scopes(top, set(map(id, top.operands)))
    while scopes:
        scope = scopes[-1]
        visible, defined = scope.visible, scope.defined
        # The hot loop of the verifier: it runs for each operation of a program.
        for op in scope.ops:
            for operand in operands_of(op):
                if id(operand) not in visible:
                    _check_hidden(op, operand)
            if op.regions and not is_isolated(op):
                scopes += _nested_scopes(op, visible)
                break
            for result in op.results:
                value_id = id(result)
                visible.add(value_id)
                defined.append(value_id)
        else:
            visible.difference_update(defined)
            scopes.pop()
            if scope.finished is not None and scopes:
                scopes[-1].define(scope.finished.results)


def _nested_scopes(op: Operation, visible: set[int]) -> list[_Scope]:
    """Return a scope that ends with `op`, then those of its regions in reverse order (the list is a stack)."""
    isolated = is_isolated(op)
    regions = [_Scope(set() if isolated else visible, region) for region in reversed(op.regions)]
    return [_Scope(visible, finished=op), *regions]


def _check_hidden(op: Operation, operand: SSAValue) -> None:
    """Raise DiagnosticError for a use of a value not yet visited, unless order is irrelevant.

    The order is irrelevant in a graph region and between blocks of the same region.
    """
    if isinstance(operand, ForwardDeclaredValue):  # defined in a region of `op` itself
        raise error(op, "operation's operand is unlinked")
    owner = operand.owner
    block = owner if isinstance(owner, Block) else owner.parent
    user = op
    while user.parent is not None and (parent := user.parent.parent_op()) is not None:
        if user.parent is block:
            if parent.has_trait(NoTerminator):
                return
            break
        if block is not None and user.parent.parent is block.parent:
            return
        if is_isolated(parent) and not (block is not None and parent.is_ancestor(block)):
            required = (parent, "required by region isolation constraints")
            raise op_error(op, "using value defined outside the region", required)
        user = parent
    raise _hidden_error(op, operand)


def _hidden_error(op: Operation, operand: SSAValue) -> DiagnosticError:
    number = list(op.operands).index(operand)
    owner = operand.owner
    if isinstance(owner, Block):
        index = 0 if owner.parent is None else list(owner.parent.blocks).index(owner)
        where, note = owner.parent_op(), f"operand defined as a block argument (block #{index} {_relation(op, owner)})"
    elif owner.parent is op.parent:
        where, note = owner, "operand defined here (op in the same block)"
    else:
        where, note = owner, f"operand defined here (op {_relation(op, owner.parent, 'is ')})"
    return error(op, f"operand #{number} does not dominate this use", (where, note))


def _relation(op: Operation, block: Block | None, copula: str = "") -> str:
    """Describe where a block is, relative to an operation."""
    use_region, block_region = op.parent_region(), None if block is None else block.parent
    if use_region is block_region:
        return "in the same region"
    if block_region is not None and use_region is not None:
        if block_region.is_ancestor(use_region):
            return "in a parent region"
        if use_region.is_ancestor(block_region):
            return "in a child region"
    return f"{copula}neither in a parent nor in a child region"


def is_isolated(op: Operation) -> bool:
    """Return whether the regions of `op` are isolated from above: they cannot capture values."""
    return op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
