"""A person's choices for the operations of a module."""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.ir.walking import operations, operations_at_top

Policy = Callable[[Sequence[Operation]], None]
"""Called with all operations of the functions of a module, in the order of the text, some of which it splits."""


def apply_policy(module: ModuleOp, policy: Policy) -> None:
    """Let `policy` choose, before anything is propagated."""
    functions = [op for op in operations_at_top(module) if isinstance(op, FuncOp)]
    policy([op for function in functions for op in operations(function)[1:]])


def policies_in_turn(policies: Sequence[Policy]) -> Policy:
    """The policy that asks `policies`, one after the other."""

    def ask(operations: Sequence[Operation]) -> None:
        for policy in policies:
            policy(operations)

    return ask
