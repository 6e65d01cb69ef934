"""A person's choices for the operations of a module."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.diagnostics import Location, warn
from sdy.ir.walking import operations, operations_at_top
from sdy.operators.call import operator_name
from sdy.warning_categories import LostShardingWarning

Policy = Callable[[Sequence[Operation]], None]
"""Called with all operations of the functions of a module, in the order of the text, some of which it splits."""


@dataclass(frozen=True, eq=False)
class _PoliciesInTurn:
    """Policies that are called one after the other."""

    policies: tuple[Policy, ...]

    def __call__(self, operations: Sequence[Operation]) -> None:
        for policy in self.policies:
            policy(operations)


def policies_in_turn(policies: Sequence[Policy]) -> Policy:
    """The policy that asks `policies`, one after the other."""
    return _PoliciesInTurn(tuple(policies))


def apply_policy(module: ModuleOp, policy: Policy) -> None:
    """Let `policy` choose, before anything is propagated.

    A policy that changes nothing of a program with annotated operators gives a warning that lists them.
    """
    functions = [op for op in operations_at_top(module) if isinstance(op, FuncOp)]
    given = [op for function in functions for op in operations(function)[1:]]
    for each in policy.policies if isinstance(policy, _PoliciesInTurn) else (policy,):
        before = [_state(op) for op in given]
        each(given)
        if before == [_state(op) for op in given]:
            _warn_of_no_match(each, given)


def _warn_of_no_match(policy: Policy, given: Sequence[Operation]) -> None:
    """Warn that a policy of a person chose nothing for `given`, if there are operators among them."""
    names = Counter(filter(None, map(operator_name, given)))
    if not names or policy.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    listed = ", ".join(f"'{name}'" + (f" ({count} times)" if count > 1 else "") for name, count in names.items())
    warn(
        _place(policy),
        f"policy '{_name(policy)}' splits no operation: the operators of this program are {listed}; "
        "compare their names with what it looks for, by sdy.operator_name(op)",
        category=LostShardingWarning,
    )


def _state(op: Operation) -> object:
    """State of an operation that a policy can change."""
    return dict(op.attributes), op.operands


def _name(policy: Policy) -> str:
    return getattr(policy, "__name__", type(policy).__name__)


def _place(policy: Policy) -> Location | None:
    """Where a policy that is a function is defined."""
    code = getattr(policy, "__code__", None)
    return Location(code.co_filename, code.co_firstlineno, 1) if isinstance(code, CodeType) else None
