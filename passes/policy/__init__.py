"""Partitioning policies: user functions that choose how operations are split."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import CodeType

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.diagnostics import Location, LostShardingWarning, warn
from sdy.dialect.meshes import named_meshes
from sdy.ir.walking import operations, operations_at_top
from sdy.operators.call import operator_name
from sdy.passes.policy.patterns import close_names, unmatched_patterns

Policy = Callable[[Sequence[Operation]], None]
"""A function that splits some of the operations of a module, which it gets in textual order."""


@dataclass(frozen=True, eq=False)
class _PolicyChain:
    """A sequence of policies as one policy."""

    policies: tuple[Policy, ...]

    def __call__(self, operations: Sequence[Operation]) -> None:
        for policy in self.policies:
            policy(operations)


def chain_policies(policies: Sequence[Policy]) -> Policy:
    """Return a policy that calls `policies` in order."""
    return _PolicyChain(tuple(policies))


def apply_policy(module: ModuleOp, policy: Policy) -> None:
    """Call `policy` on the operations of `module`, before propagation.

    Warns if a policy changes nothing in a program with annotated operators: names the patterns in the policy's code
    that match no operation, with similar names, or else lists the operators.
    """
    functions = [op for op in operations_at_top(module) if isinstance(op, FuncOp)]
    ops = [op for function in functions for op in operations(function)[1:]]
    for single in policy.policies if isinstance(policy, _PolicyChain) else (policy,):
        before = [_state(op) for op in ops]
        single(ops)
        if before == [_state(op) for op in ops]:
            axes = {name for mesh in named_meshes(module).values() for name, _ in mesh.axes}
            _warn_of_no_match(single, ops, axes)


def _warn_of_no_match(policy: Policy, ops: Sequence[Operation], axes: Set[str]) -> None:
    """Warn that a user's policy changed none of `ops`, if these include operators."""
    operators = Counter(filter(None, map(operator_name, ops)))
    if not operators or policy.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    counts = operators + Counter(op.name for op in ops)
    patterns = [_unmatched(each, counts) for each in unmatched_patterns(policy, counts, axes)]
    listed = f"the operators of this program are {_listed(operators, operators)}, as returned by sdy.operator_name(op)"
    warn(
        _location(policy),
        f"policy '{_name(policy)}' splits no operation; {'; '.join([*patterns, listed])}",
        category=LostShardingWarning,
    )


def _unmatched(pattern: str, counts: Mapping[str, int]) -> str:
    close = close_names(pattern, counts)
    return f"'{pattern}' matches no name" + (f", similar names are {_listed(close, counts)}" if close else "")


def _listed(names: Iterable[str], counts: Mapping[str, int]) -> str:
    return ", ".join(f"'{name}'" + (f" ({counts[name]} times)" if counts[name] > 1 else "") for name in names)


def _state(op: Operation) -> object:
    """Return the state of an operation that a policy can change."""
    return dict(op.attributes), op.operands


def _name(policy: Policy) -> str:
    return getattr(policy, "__name__", type(policy).__name__)


def _location(policy: Policy) -> Location | None:
    """Return the location of a policy's definition, None unless it is a function."""
    code = getattr(policy, "__code__", None)
    return Location(code.co_filename, code.co_firstlineno, 1) if isinstance(code, CodeType) else None
