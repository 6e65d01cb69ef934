"""The registry of annotated operators.

Most programs call none, so the modules that define operators are imported on use.
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
"""The versions of each operator by name, one for each registration: programs call the version of their trace."""


def register_operator(operator: "Operator") -> None:
    """Register `operator`, as a new version if it replaces a registered one.

    Raises:
        ValueError: Another operator has that name, or the name is invalid.
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
    """Return the called operator; the latest version if this process does not have the called one; None if unknown."""
    versions = _operators.get(call.operator, [])
    return versions[call.version] if call.version < len(versions) else versions[-1] if versions else None


def registered_names() -> list[str]:
    """Return the names of all operators."""
    return sorted(_operators)


def operator_rule_of(op: Operation) -> "OperatorRule | None":
    """Return the sharding rule of the operator that `op` calls; None if it calls no known operator.

    Args:
        op: An operation with global (unpartitioned) tensor types.

    Raises:
        AnnotationError: The operands do not match the operator's annotation.
    """
    if OPERATOR not in op.attributes:
        return None
    from sdy.operators.call import call_of

    call = call_of(op)
    operator = operator_of(call) if call else None
    if call is None or operator is None:
        return None
    return operator.rule(call, list(map(shape_of, op.operands)), list(map(shape_of, op.results)))
