"""Cache of the texts of operations that are equal except for their values.

    stablehlo.add %3, %4 : tensor<8x4xf32>        stablehlo.add %7, %7 : tensor<8x4xf32>

The layers of a deep model repeat a few hundred operations. The first of each is printed and its text is kept as a
template; for the others the names of their values are filled in. The text depends on the class, the types, the
attributes and the default dialect; operations with regions are not cached.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Attribute, Operation, SSAValue

from sdy.ir.fast_access import operands_of
from sdy.ir.operation_key import OperationKey, key_by_identity

_MAX_CACHED_LENGTH = 4096
"""The longest cached text, in characters: an operation with a big constant, for example, is not cached."""


class _Text(NamedTuple):
    template: str
    """The text with `%s` for the name of each value."""

    operands: tuple[int, ...]
    """The operand number of each name."""

    attributes: list[Attribute]
    """The objects whose identities are in the key, kept alive."""


class TextCache:
    """The cache; it is looked up for each operation, so it is written for speed."""

    def __init__(self) -> None:
        self._texts: dict[OperationKey, _Text] = {}

    def key(self, op: Operation, default_dialect: str) -> OperationKey:
        """Return a key of everything that the text of `op` depends on except names."""
        key = key_by_identity(op)
        key.append(default_dialect)
        if attributes := op.attributes:
            key += attributes
            key += map(id, attributes.values())
        return tuple(key)

    def find(self, key: OperationKey, op: Operation, names: Mapping[SSAValue, str]) -> str | None:
        """Return the text of `op` if the key is cached and all operands have names."""
        known = self._texts.get(key)
        if known is None:
            return None
        operands = operands_of(op)
        try:
            return known.template % tuple([names[operands[number]] for number in known.operands])
        except KeyError:
            return None

    def add(self, key: OperationKey, op: Operation, parts: Sequence[str], named: Mapping[int, SSAValue]) -> None:
        """Cache the text of `op` if its operands are distinct and it contains only their names.

        Args:
            key: The key of `op`.
            op: The printed operation.
            parts: The pieces of its text.
            named: The values whose names are pieces, by the number of the piece.
        """
        numbers = {value: number for number, value in enumerate(op.operands)}
        if len(numbers) < len(op.operands) or not numbers.keys() >= {*named.values()}:
            return
        template = "".join("%%%s" if place in named else part.replace("%", "%%") for place, part in enumerate(parts))
        if "\n" in template or len(template) > _MAX_CACHED_LENGTH:
            return
        kept = [*op.operand_types, *op.result_types, *op.properties.values(), *op.attributes.values()]
        self._texts[key] = _Text(template, tuple(numbers[value] for value in named.values()), kept)
