"""A call of an annotated operator, as the attribute `sdy.operator` of an operation tells of it.

    matmul_custom(h=8)                                            the operator, with an argument that is no tensor
    gradient(matmul_custom(h=8), count=2, of=(0, 1), at=(0,))     its gradient
    tangent(matmul_custom(h=8), count=2, of=(0, 1), at=(0,))      its tangent
    batched(matmul_custom(h=8), batch=(True, False))              many at once
    padded(f(), operands=((7,),), results=((8,),))                the leading part of padded operands

It is an expression of Python, in which calls and literals are all that there is.
"""

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.dialect.attributes import OPERATOR
from sdy.operators.shapes import size_given
from sdy.operators.transforms import Batched, Gradient, Padded, Tangent, Transform

TRANSFORMS: dict[str, type[Transform]] = {
    "gradient": Gradient,
    "tangent": Tangent,
    "batched": Batched,
    "padded": Padded,
}


@dataclass(frozen=True)
class OperatorCall:
    """The name of an operator, its arguments that are no tensors by their names, and what is made of the operator."""

    operator: str
    arguments: tuple[tuple[str, Any], ...] = ()
    transforms: tuple[Transform, ...] = ()

    def then(self, transform: Transform) -> "OperatorCall":
        """What `transform` makes of this."""
        return replace(self, transforms=(*self.transforms, transform))

    def before(self) -> "OperatorCall":
        """Return the call without its last transform."""
        return replace(self, transforms=self.transforms[:-1])

    def with_sizes(self, sizes: Mapping[str, int]) -> "OperatorCall":
        """Return the call in which the arguments that are sizes, and are among `sizes`, have those values instead."""
        arguments = (
            (name, value if size_given(value) is None else sizes.get(name, value)) for name, value in self.arguments
        )
        return replace(self, arguments=tuple(arguments))

    @property
    def name(self) -> str:
        """What is called, without arguments and padding: `matmul_custom`, `gradient(matmul_custom)`."""
        name = self.operator
        for transform in self.transforms:
            if isinstance(transform, Padded):
                continue
            name = f"{_name_of(transform)}({name})"
        return name

    def __str__(self) -> str:
        text = f"{self.operator}({_written(dict(self.arguments))})"
        for transform in self.transforms:
            text = f"{_name_of(transform)}({text}, {_written(asdict(transform))})"
        return text


def call_of(op: Operation) -> OperatorCall | None:
    """The call that an operation is, None if it is none.

    Raises:
        DiagnosticError: what the operation says of it can't be read.
    """
    attribute = op.attributes.get(OPERATOR)
    if attribute is None or not isinstance(attribute, StringAttr):
        return None
    try:
        return parse_call(attribute.data)
    except ValueError:
        raise error(op, f"`{attribute.data}` is no call of an operator, such as `matmul(h=8)`") from None


def operator_name(op: Operation) -> str | None:
    """The name of the annotated operator that `op` calls, `gradient(name)` where it is its gradient, None if none."""
    call = call_of(op)
    return None if call is None else call.name


@lru_cache(maxsize=1024)
def parse_call(text: str) -> OperatorCall:
    """Read a call.

    Raises:
        ValueError: it can't be read.
    """
    try:
        return _call(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, IndexError):
        raise ValueError(f"no call of an operator: {text}") from None


def _call(tree: ast.expr) -> OperatorCall:
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise TypeError
    values = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in tree.keywords}
    if tree.func.id in TRANSFORMS:
        return _call(tree.args[0]).then(TRANSFORMS[tree.func.id](**values))
    return OperatorCall(tree.func.id, tuple(values.items()))


def _name_of(transform: Transform) -> str:
    return next(name for name, kind in TRANSFORMS.items() if isinstance(transform, kind))


def _written(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
