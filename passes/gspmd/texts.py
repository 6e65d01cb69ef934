"""Where a module keeps its shardings of GSPMD: in `mhlo.sharding`, and in custom calls that are there for them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from sdy.diagnostics import error
from sdy.gspmd.hlo_sharding import HloSharding
from sdy.gspmd.syntax import HloShardingError, parse_hlo_sharding
from sdy.ir.walking import operations
from sdy.stablehlo.custom_call import CustomCallOp

HLO_SHARDING = "mhlo.sharding"
"""The attribute of an operation, an argument or a result that has the text of its sharding."""
FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"
"""The attribute with texts that XLA passes on, a sharding's among them."""
SHARDING_CALL = "Sharding"
"""The custom call whose result is its operand, in the layout that it asks for."""
FULL_TO_SHARD = "SPMDFullToShardShape"
"""The custom call whose result is what a device has of its operand: with it begins a part that is written for one."""
SHARD_TO_FULL = "SPMDShardToFullShape"
"""The custom call whose result is the tensor of which its operand is what a device has."""

HloShardings: TypeAlias = HloSharding | tuple[HloSharding, ...]

_OPEN_DIMS = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")


def is_call(op: object, target: str) -> TypeGuard[CustomCallOp]:
    """Whether `op` is a custom call of this target."""
    return isinstance(op, CustomCallOp) and op.call_target_name.data == target


def open_dims(call: CustomCallOp) -> frozenset[int]:
    """The dimensions of which a custom call `Sharding` says nothing."""
    config = call.backend_config
    found = _OPEN_DIMS.search(config.data) if isinstance(config, StringAttr) else None
    return frozenset(int(dim) for dim in found.group(1).split(",") if dim.strip()) if found else frozenset()


def attributes_with_texts(module: Operation) -> Iterator[tuple[Operation, Mapping[str, Attribute]]]:
    """The attributes of each operation of `module`, and of each argument and result of its functions."""
    for op in operations(module):
        yield op, op.attributes
        if isinstance(op, FuncOp):
            for entries in (op.arg_attrs, op.res_attrs):
                yield from ((op, entry.data) for entry in entries or ())


def text_in(attributes: Mapping[str, Attribute], name: str = HLO_SHARDING) -> str | None:
    """What `attributes` have under this name, themselves or in what XLA passes on."""
    own = attributes.get(name)
    passed_on = attributes.get(FRONTEND_ATTRIBUTES)
    if own is None and isinstance(passed_on, DictionaryAttr):
        own = passed_on.data.get(name)
    return own.data if isinstance(own, StringAttr) else None


def without_text(attributes: Mapping[str, Attribute], name: str = HLO_SHARDING) -> dict[str, Attribute]:
    """`attributes` without what `text_in` finds."""
    left = {key: value for key, value in attributes.items() if key != name}
    passed_on = left.pop(FRONTEND_ATTRIBUTES, None)
    if isinstance(passed_on, DictionaryAttr):
        passed_on = DictionaryAttr({key: value for key, value in passed_on.data.items() if key != name})
    if passed_on is not None and passed_on != DictionaryAttr({}):
        left[FRONTEND_ATTRIBUTES] = passed_on
    return left


@dataclass
class Texts:
    """The shardings that texts are, each read once."""

    _read: dict[str, HloShardings] = field(default_factory=dict[str, HloShardings])

    def sharding_in(self, attributes: Mapping[str, Attribute], where: Operation) -> HloShardings | None:
        """The sharding that `attributes` of `where` have; DiagnosticError for a text that is none."""
        text = text_in(attributes)
        if text is None:
            return None
        if text not in self._read:
            try:
                self._read[text] = parse_hlo_sharding(text)
            except HloShardingError as problem:
                raise error(where, f"'{HLO_SHARDING}', {problem}") from None
        return self._read[text]

    def one_in(self, attributes: Mapping[str, Attribute], where: Operation) -> HloSharding | None:
        """As `sharding_in`, of a single value."""
        found = self.sharding_in(attributes, where)
        if isinstance(found, tuple):
            if len(found) != 1:
                raise error(where, f"'{HLO_SHARDING}' is a tuple of {len(found)} shardings, and there is one value")
            return found[0]
        return found

    def of_value(self, value: SSAValue) -> tuple[HloSharding, frozenset[int]] | None:
        """The sharding that `value` has where it is made, and the dimensions of which it says nothing."""
        op = value.owner
        if not isinstance(op, Operation):
            function = op.parent_op()
            if not isinstance(function, FuncOp) or function.arg_attrs is None:
                return None
            found = self.one_in(function.arg_attrs.data[op.args.index(value)].data, function)
            return None if found is None else (found, frozenset())
        found = self.sharding_in(op.attributes, op)
        one = found[op.results.index(value)] if isinstance(found, tuple) else found
        return None if one is None else (one, open_dims(op) if isinstance(op, CustomCallOp) else frozenset())

    def all_in(self, module: Operation) -> Iterator[HloSharding]:
        """All shardings in `module`."""
        for where, attributes in attributes_with_texts(module):
            found = self.sharding_in(attributes, where)
            if found is not None:
                yield from found if isinstance(found, tuple) else (found,)
