"""Calls of annotated operators, and their text in the attribute `sdy.operator`.

    matmul_custom(h=8)                                            the operator, with a non-tensor argument
    gradient(matmul_custom(h=8), count=2, of=(0, 1), at=(0,))     its gradient
    tangent(matmul_custom(h=8), count=2, of=(0, 1), at=(0,))      its tangent
    batched(matmul_custom(h=8), batch=(True, False))              its batched form
    key_data(dropout(), operands=((0, 'threefry2x32', 0, 2),), results=())    random keys passed as their data
    padded(f(), operands=((7,),), results=((8,),))                the operator on the leading part of padded operands

The text is a Python expression of calls and literals.
"""

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from sdy.diagnostics import error
from sdy.dialect.attributes import OPERATOR
from sdy.operators.arguments import literal_text
from sdy.operators.shapes import size_argument
from sdy.operators.transforms import Batched, Gradient, KeyData, Padded, Tangent, Transform

TRANSFORMS: dict[str, type[Transform]] = {
    "gradient": Gradient,
    "tangent": Tangent,
    "batched": Batched,
    "padded": Padded,
    "key_data": KeyData,
}


@dataclass(frozen=True, eq=False)
class OperatorCall:
    """The name of an operator, its non-tensor arguments by name, and the transforms applied to it, innermost first.

    If an operator was registered several times, `version` counts from 0. Two calls are equal if their texts are: 1, 1.0
    and True are different arguments. An argument that contains tensors has an Ellipsis for each.
    """

    operator: str
    arguments: tuple[tuple[str, Any], ...] = ()
    transforms: tuple[Transform, ...] = ()
    version: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OperatorCall) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def then(self, transform: Transform) -> "OperatorCall":
        """Return the call with `transform` applied."""
        return replace(self, transforms=(*self.transforms, transform))

    def before(self) -> "OperatorCall":
        """Return the call without its last transform."""
        return replace(self, transforms=self.transforms[:-1])

    def with_sizes(self, sizes: Mapping[str, int]) -> "OperatorCall":
        """Return the call with the values of its size arguments replaced by those in `sizes`."""
        arguments = (
            (name, value if size_argument(value) is None else sizes.get(name, value)) for name, value in self.arguments
        )
        return replace(self, arguments=tuple(arguments))

    @property
    def name(self) -> str:
        """The callee without arguments and tensor positions: `matmul_custom`, `gradient(matmul_custom)`."""
        name = self.operator
        for transform in self.transforms:
            if isinstance(transform, Padded | KeyData):
                continue
            name = f"{_name_of(transform)}({name})"
        return name

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        version = f".v{self.version}" if self.version else ""
        text = f"{self.operator}{version}({_arguments_text(dict(self.arguments))})"
        for transform in self.transforms:
            text = f"{_name_of(transform)}({text}, {_arguments_text(asdict(transform))})"
        return text


def call_of(op: Operation) -> OperatorCall | None:
    """Return the operator call of an operation; None if it has none.

    Raises:
        DiagnosticError: The `sdy.operator` attribute cannot be parsed.
    """
    attribute = op.attributes.get(OPERATOR)
    if attribute is None or not isinstance(attribute, StringAttr):
        return None
    try:
        return parse_call(attribute.data)
    except ValueError:
        raise error(op, f"`{attribute.data}` is not an operator call such as `matmul(h=8)`") from None


def operator_name(op: Operation) -> str | None:
    """Return the name of the operator that `op` calls, `gradient(name)` for its gradient; None if it calls none."""
    call = call_of(op)
    return None if call is None else call.name


@lru_cache(maxsize=1024)
def parse_call(text: str) -> OperatorCall:
    """Parse an operator call.

    Raises:
        ValueError: The text cannot be parsed.
    """
    try:
        return _call(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, IndexError):
        raise ValueError(f"not an operator call: {text}") from None


def _call(tree: ast.expr) -> OperatorCall:
    if not isinstance(tree, ast.Call):
        raise TypeError
    values = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in tree.keywords}
    match tree.func:
        case ast.Name(id=name) if name in TRANSFORMS:
            return _call(tree.args[0]).then(TRANSFORMS[name](**values))
        case ast.Name(id=name):
            return OperatorCall(name, tuple(values.items()))
        case ast.Attribute(value=ast.Name(id=name), attr=version):
            return OperatorCall(name, tuple(values.items()), version=int(version.removeprefix("v")))
        case _:
            raise TypeError


def _name_of(transform: Transform) -> str:
    return next(name for name, kind in TRANSFORMS.items() if isinstance(transform, kind))


def _arguments_text(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={literal_text(value)}" for name, value in values.items())
