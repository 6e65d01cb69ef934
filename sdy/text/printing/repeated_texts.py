"""The texts of operations that are equal but for the values they work on: what stands between the names of these.

    stablehlo.add %3, %4 : tensor<8x4xf32>        stablehlo.add %7, %7 : tensor<8x4xf32>

The layers of a deep model repeat the same few hundred operations. The first is printed piece by piece; for the others
names are put in their places. What an operation prints depends on its class, its types and its attributes alone, and on
the dialect whose name goes without saying; one with regions is not remembered.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Attribute, Operation, SSAValue

from sdy.ir.fields import operands_of
from sdy.ir.operation_key import OperationKey, key_by_identity

_LONGEST = 4096
"""Characters; one with a big constant, for example, is not worth remembering."""


class _Text(NamedTuple):
    template: str
    """The text with `%s` for each name."""

    operands: tuple[int, ...]
    """Whose names these are, by the number of the operand."""

    attributes: list[Attribute]
    """What is in the key, as no other object may take its place in memory."""


class RepeatedTexts:
    """What was printed; asked for each operation, so that this is written to be fast."""

    def __init__(self) -> None:
        self._texts: dict[OperationKey, _Text] = {}

    def key(self, op: Operation, default_dialect: str) -> OperationKey:
        """All that the text of `op` depends on but names."""
        key = key_by_identity(op)
        key.append(default_dialect)
        if attributes := op.attributes:
            key += attributes
            key += map(id, attributes.values())
        return tuple(key)

    def find(self, key: OperationKey, op: Operation, names: Mapping[SSAValue, str]) -> str | None:
        """The text of `op` where one with its key was printed before and all its operands have names."""
        known = self._texts.get(key)
        if known is None:
            return None
        operands = operands_of(op)
        try:
            return known.template % tuple([names[operands[number]] for number in known.operands])
        except KeyError:
            return None

    def add(self, key: OperationKey, op: Operation, parts: Sequence[str], named: Mapping[int, SSAValue]) -> None:
        """Remember what was printed for `op`, where the names in it are those of operands that are all different.

        `named` are the values whose names, after `%`, are parts by themselves.
        """
        numbers = {value: number for number, value in enumerate(op.operands)}
        if len(numbers) < len(op.operands) or not numbers.keys() >= {*named.values()}:
            return
        template = "".join("%%%s" if place in named else part.replace("%", "%%") for place, part in enumerate(parts))
        if "\n" in template or len(template) > _LONGEST:
            return
        kept = [*op.operand_types, *op.result_types, *op.properties.values(), *op.attributes.values()]
        self._texts[key] = _Text(template, tuple(numbers[value] for value in named.values()), kept)
