"""What xDSL's objects hold, read without the property, the view or the check that is around it.

For loops that go round once for each operation or use of a program: `operands_of(op)` takes a fifth of the time of
`op.operands`, of which each reading makes a view. What changes an operand goes through `op.operands`, or
`sdy.ir.editing`.
"""

from collections.abc import Callable
from operator import attrgetter

from xdsl.ir import Attribute, Operation, SSAValue, SSAValues, Use

operands_of: Callable[[Operation], SSAValues] = attrgetter("_operands")
"""The values that an operation works on."""

type_of: Callable[[SSAValue], Attribute] = attrgetter("_type")
"""The type of a value."""

user_of: Callable[[Use], Operation] = attrgetter("_operation")
"""The operation that has a use."""

next_use: Callable[[Use], Use | None] = attrgetter("_next_use")
"""The use after another in the use list of its value; None after the last."""
