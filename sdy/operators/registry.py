"""The annotated operators that there are.

Most programs call none, so that what an operator is becomes known here only where one is called.
"""

from typing import TYPE_CHECKING

from xdsl.ir import Operation

from sdy.dialect.attributes import OPERATOR
from sdy.ir.shapes import shape_of

if TYPE_CHECKING:
    from sdy.operators.operator import Operator
    from sdy.operators.rules import OperatorRule

_operators: dict[str, "Operator"] = {}


def register_operator(operator: "Operator") -> None:
    """Let programs call `operator`.

    Raises:
        ValueError: there is one of that name already, or the name is not one that an operator can have.
    """
    from sdy.operators.call import TRANSFORMS

    name = operator.name
    if not name.isidentifier() or name in TRANSFORMS:
        raise ValueError(f"operator '{name}': the name must be an identifier, and none of {', '.join(TRANSFORMS)}")
    if name in _operators:
        raise ValueError(f"operator '{name}' is registered twice: give one of them another name")
    _operators[name] = operator


def find_operator(name: str) -> "Operator | None":
    """The operator of that name."""
    return _operators.get(name)


def operator_rule_of(op: Operation) -> "OperatorRule | None":
    """The sharding rule of the operator that `op`, whose tensors are whole, calls; None if there is no such operator.

    Raises:
        AnnotationError: the operands don't fit the operator's annotation.
    """
    if OPERATOR not in op.attributes:
        return None
    from sdy.operators.call import call_of

    call = call_of(op)
    operator = find_operator(call.operator) if call else None
    if call is None or operator is None:
        return None
    return operator.rule(call, list(map(shape_of, op.operands)), list(map(shape_of, op.results)))
