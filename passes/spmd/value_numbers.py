"""Value numbering: equal numbers for values that are known to be equal."""

from collections.abc import Hashable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from sdy.passes.common.loops import carried_unchanged
from sdy.passes.common.properties import is_pure
from sdy.stablehlo.control_flow import OptimizationBarrierOp, WhileOp

_IGNORED_ATTRIBUTES = {"sdy.sharding", "channel_handle"}
"""Attributes that do not affect results: the sharding of the unpartitioned tensor, and the channel id."""


class ValueNumbers:
    """Value numbers: two values with the same number are equal wherever both are defined.

    Results of pure operations with equal attributes, types and operands have the same number, as have a loop-invariant
    loop argument and its initial value, and the arguments of a loop's condition and body for the same iteration. The
    results of an optimization barrier have numbers of their own, because it asks for the operations behind it to be
    computed again.
    """

    def __init__(self) -> None:
        self._of_value: dict[SSAValue, Hashable] = {}
        self._of_key: dict[Hashable, int] = {}
        self._of_attribute: dict[int, tuple[int, Attribute]] = {}
        """Interned attributes, by their addresses, which the entries keep alive: hashing an attribute is slow."""

    def number(self, op: Operation) -> None:
        """Number the results of `op`, whose operands have been numbered before."""
        # Operation classes are ABCs, for which a failing isinstance is slow.
        if type(op) is WhileOp:
            unchanged = carried_unchanged(op)
            self._of_value.update({each: self.number_of(begin) for each, begin in unchanged.items()})
            for tested, carried in zip(op.cond.block.args, op.body.block.args, strict=True):
                self._of_value[carried] = self.number_of(tested)
        elif op.results and is_pure(op) and type(op) is not OptimizationBarrierOp:
            key = self.key(op)
            if key is not None:
                number = self._of_key.setdefault(key, len(self._of_key))
                self._of_value.update((result, (number, result.index)) for result in op.results)

    def number_of(self, value: SSAValue) -> Hashable:
        """Return the number of `value`, or `value` itself if its operation has not been numbered."""
        return self._of_value.get(value, value)

    def key(self, op: Operation) -> Hashable:
        """Return the key of `op`, equal for operations that compute equal results; None if `op` has nested regions."""
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
            if name not in _IGNORED_ATTRIBUTES
        ]
        types = [self._attribute(result.type) for result in op.results]
        operands = [inside.get(operand) or self.number_of(operand) for operand in op.operands]
        return op.__class__, frozenset(attributes), *types, *operands

    def _attribute(self, attribute: Attribute) -> int:
        known = self._of_attribute.get(id(attribute))
        if known is None:
            number = self._of_key.setdefault(attribute, len(self._of_key))
            known = self._of_attribute[id(attribute)] = number, attribute
        return known[0]
