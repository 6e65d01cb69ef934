"""Value numbering: which values are known to be equal, by the operations that compute them."""

from collections.abc import Hashable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from sdy.passes.common.loops import carried_unchanged
from sdy.passes.common.op_properties import is_pure
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp

_SAYS_NOTHING_OF_VALUES = {"sdy.sharding", "channel_handle"}
"""Attributes in which equal operations may differ: how a whole tensor is split of which a device has its part, and the
number of the channel that devices communicate by."""


class ValueNumbers:
    """Numbers for values, where values of one number are equal wherever both are there.

    Equal are the results of operations without effects that have equal attributes, types and operands; and a loop's
    argument, where the loop does not change it, and its initial value. The results of an optimization barrier equal
    nothing else: whoever puts one there wants what follows computed once more.
    """

    def __init__(self) -> None:
        self._of_value: dict[SSAValue, Hashable] = {}
        self._of_key: dict[Hashable, int] = {}
        self._of_attribute: dict[int, tuple[int, Attribute]] = {}
        """By the address of the attribute, which is kept in memory: to hash one takes long, and is done once."""

    def number(self, op: Operation) -> None:
        """Tell the values that `op` computes; those that it uses have been told."""
        # Operations' classes are abstract ones, with which isinstance is slow to say no.
        if type(op) is WhileOp:
            unchanged = carried_unchanged(op)
            self._of_value.update({each: self._of_value.get(begin, begin) for each, begin in unchanged.items()})
        elif op.results and is_pure(op) and type(op) is not OptimizationBarrierOp:
            key = self.key(op)
            if key is not None:
                number = self._of_key.setdefault(key, len(self._of_key))
                self._of_value.update((result, (number, result.index)) for result in op.results)

    def key(self, op: Operation) -> Hashable:
        """What operations have in common that are equal but for their effects; None where that is not looked for.

        It is not in operations that have regions in regions.
        """
        inside = dict[SSAValue, Hashable]()
        keys = [self._key(op, inside)]
        for region in op.regions:
            for block in region.blocks:
                inside.update((argument, ("inside", len(keys), argument.index)) for argument in block.args)
                keys.append(tuple(self._attribute(argument.type) for argument in block.args))
                for inner in block.ops:
                    if inner.regions:
                        return None
                    inside.update((result, ("inside", len(keys), result.index)) for result in inner.results)
                    keys.append(self._key(inner, inside))
        return tuple(keys)

    def _key(self, op: Operation, inside: Mapping[SSAValue, Hashable]) -> tuple[Hashable, ...]:
        attributes = [
            (name, self._attribute(attribute))
            for named in (op.properties, op.attributes)
            for name, attribute in named.items()
            if name not in _SAYS_NOTHING_OF_VALUES
        ]
        types = [self._attribute(result.type) for result in op.results]
        operands = [inside.get(operand) or self._of_value.get(operand, operand) for operand in op.operands]
        return op.__class__, frozenset(attributes), *types, *operands

    def _attribute(self, attribute: Attribute) -> int:
        known = self._of_attribute.get(id(attribute))
        if known is None:
            number = self._of_key.setdefault(attribute, len(self._of_key))
            known = self._of_attribute[id(attribute)] = number, attribute
        return known[0]
