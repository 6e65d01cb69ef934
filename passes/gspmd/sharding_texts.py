"""GSPMD shardings in a module: `mhlo.sharding` attributes and custom calls."""

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
"""Attribute of an operation, an argument or a result: the text of its GSPMD sharding."""
FRONTEND_ATTRIBUTES = "mhlo.frontend_attributes"
"""Attribute with texts that XLA preserves, such as shardings."""
SHARDING_CALL = "Sharding"
"""Target of a sharding constraint."""
FULL_TO_SHARD = "SPMDFullToShardShape"
"""Target that converts a tensor to its local shard, at the start of a manual part."""
SHARD_TO_FULL = "SPMDShardToFullShape"
"""Target that converts a local shard to the full tensor, at the end of a manual part."""

HloShardings: TypeAlias = HloSharding | tuple[HloSharding, ...]

_OPEN_DIMS = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")


def is_call(op: object, target: str) -> TypeGuard[CustomCallOp]:
    """Return whether `op` is a custom call of this target."""
    return isinstance(op, CustomCallOp) and op.call_target_name.data == target


def open_dims(call: CustomCallOp) -> frozenset[int]:
    """Return the open dimensions of a `Sharding` custom call."""
    config = call.backend_config
    match = _OPEN_DIMS.search(config.data) if isinstance(config, StringAttr) else None
    return frozenset(int(dim) for dim in match.group(1).split(",") if dim.strip()) if match else frozenset()


def attributes_with_texts(module: Operation) -> Iterator[tuple[Operation, Mapping[str, Attribute]]]:
    """Yield the attributes of each operation of `module`, and of each argument and result of its functions."""
    for op in operations(module):
        yield op, op.attributes
        if isinstance(op, FuncOp):
            for entries in (op.arg_attrs, op.res_attrs):
                yield from ((op, entry.data) for entry in entries or ())


def text_in(attributes: Mapping[str, Attribute], name: str = HLO_SHARDING) -> str | None:
    """Return the text of `name` in `attributes` or in their frontend attributes, None if absent."""
    own = attributes.get(name)
    frontend = attributes.get(FRONTEND_ATTRIBUTES)
    if own is None and isinstance(frontend, DictionaryAttr):
        own = frontend.data.get(name)
    return own.data if isinstance(own, StringAttr) else None


def without_text(attributes: Mapping[str, Attribute], name: str = HLO_SHARDING) -> dict[str, Attribute]:
    """Return `attributes` without the text that `text_in` returns."""
    remaining = {key: value for key, value in attributes.items() if key != name}
    frontend = remaining.pop(FRONTEND_ATTRIBUTES, None)
    if isinstance(frontend, DictionaryAttr):
        frontend = DictionaryAttr({key: value for key, value in frontend.data.items() if key != name})
    if frontend is not None and frontend != DictionaryAttr({}):
        remaining[FRONTEND_ATTRIBUTES] = frontend
    return remaining


@dataclass
class ShardingTexts:
    """Memoized parser of GSPMD shardings."""

    _parsed: dict[str, HloShardings] = field(default_factory=dict[str, HloShardings])

    def sharding_in(self, attributes: Mapping[str, Attribute], where: Operation) -> HloShardings | None:
        """Return the sharding or tuple of shardings in `attributes`. Raises DiagnosticError if it cannot be parsed."""
        text = text_in(attributes)
        if text is None:
            return None
        if text not in self._parsed:
            try:
                self._parsed[text] = parse_hlo_sharding(text)
            except HloShardingError as problem:
                raise error(where, f"'{HLO_SHARDING}', {problem}") from None
        return self._parsed[text]

    def one_in(self, attributes: Mapping[str, Attribute], where: Operation) -> HloSharding | None:
        """Return the sharding in `attributes`. Raises DiagnosticError for a tuple of several."""
        sharding = self.sharding_in(attributes, where)
        if isinstance(sharding, tuple):
            if len(sharding) != 1:
                raise error(where, f"'{HLO_SHARDING}' is a tuple of {len(sharding)} shardings, expected one")
            return sharding[0]
        return sharding

    def of_value(self, value: SSAValue) -> tuple[HloSharding, frozenset[int]] | None:
        """Return the sharding of `value` at its definition, and its open dimensions."""
        op = value.owner
        if not isinstance(op, Operation):
            function = op.parent_op()
            if not isinstance(function, FuncOp) or function.arg_attrs is None:
                return None
            sharding = self.one_in(function.arg_attrs.data[op.args.index(value)].data, function)
            return None if sharding is None else (sharding, frozenset())
        sharding = self.sharding_in(op.attributes, op)
        sharding = sharding[op.results.index(value)] if isinstance(sharding, tuple) else sharding
        return None if sharding is None else (sharding, open_dims(op) if isinstance(op, CustomCallOp) else frozenset())

    def all_in(self, module: Operation) -> Iterator[HloSharding]:
        """Yield all shardings in `module`."""
        for where, attributes in attributes_with_texts(module):
            sharding = self.sharding_in(attributes, where)
            if sharding is not None:
                yield from sharding if isinstance(sharding, tuple) else (sharding,)
