"""The annotated operators that there are.

Most programs call none, so that what an operator is becomes known here only where one is called.
"""

from typing import TYPE_CHECKING

from xdsl.ir import Operation

from sdy.dialect.attributes import OPERATOR
from sdy.ir.shapes import shape_of

if TYPE_CHECKING:
    from sdy.operators.call import OperatorCall
    from sdy.operators.operator import Operator
    from sdy.operators.rules import OperatorRule

_operators: dict[str, list["Operator"]] = {}
"""The operators of each name, one for each time that it was registered: programs call the one they were traced with."""


def register_operator(operator: "Operator") -> None:
    """Let programs call `operator`, instead of the one that it replaces.

    Raises:
        ValueError: another one has that name already, or the name is not one that an operator can have.
    """
    from sdy.operators.call import TRANSFORMS

    name = operator.name
    if not name.isidentifier() or name in TRANSFORMS:
        raise ValueError(f"operator '{name}': the name must be an identifier, and none of {', '.join(TRANSFORMS)}")
    versions = _operators.setdefault(name, [])
    if versions and not operator.replaces(versions[-1]):
        raise ValueError(f"operator '{name}' is registered twice: give one of them another name")
    operator.version = len(versions)
    versions.append(operator)


def operator_of(call: "OperatorCall") -> "Operator | None":
    """Return the operator that is called; of a version that this process does not have, the last one."""
    versions = _operators.get(call.operator, [])
    return versions[call.version] if call.version < len(versions) else versions[-1] if versions else None


def registered_names() -> list[str]:
    """Return the names of all operators."""
    return sorted(_operators)


def operator_rule_of(op: Operation) -> "OperatorRule | None":
    """The sharding rule of the operator that `op`, whose tensors are whole, calls; None if there is no such operator.

    Raises:
        AnnotationError: the operands don't fit the operator's annotation.
    """
    if OPERATOR not in op.attributes:
        return None
    from sdy.operators.call import call_of

    call = call_of(op)
    operator = operator_of(call) if call else None
    if call is None or operator is None:
        return None
    return operator.rule(call, list(map(shape_of, op.operands)), list(map(shape_of, op.results)))
