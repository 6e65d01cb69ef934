"""Operation -> sharding rule: the one place that knows which rule an operation has.

A rule given in the program, as the attribute `sdy.sharding_rule`, wins. Otherwise it is made by the function that is
registered for the operation's name, or by the operation itself through the trait `ShardingRuleInterface`:

    @register("mine.scale")
    def scale(op: Operation, rule: RuleBuilder) -> None:
        rule.add_pointwise(shape_of(op.results[0]))

Operations that are equal but for the values they work on share one rule, so that the layers of a deep model cost what
one layer does, and so that work which depends on a rule alone can be remembered by it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.traits import IsTerminator

from sdy.diagnostics import warn
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.interfaces import ShardableDataFlow, ShardingRuleInterface
from sdy.rule import OpShardingRule
from sdy.rules.builder import RuleBuilder

RuleFunction = Callable[[Any, RuleBuilder], None]
"""Adds an operation's factors to a builder made for it, or raises `NoRule`."""

RuleMaker = Callable[[Any, bool], OpShardingRule | None]
"""(operation, conservative) -> its rule."""


class NoRule(Exception):  # noqa: N818  (not an error: most programs have such operations)
    """The operation has no rule, so nothing is propagated through it. The reason, if any, is worth a warning."""


_makers: dict[str, RuleMaker] = {}
_looks_around: set[str] = set()
_without_rule: set[str] = set()
_remembered: dict[object, OpShardingRule | None] = {}
_shared: dict[OpShardingRule, OpShardingRule] = {}
_warned: set[str] = set()


def register(*names: str, looks_around: bool = False) -> Callable[[RuleFunction], RuleFunction]:
    """A decorator that makes a function the rule of the operations called `names`.

    What it decides may depend on the operation's name, its attributes without a dialect's prefix, and its types. One
    that also looks at what defines or uses the operation's values, or into its regions, `looks_around`.

    Raises:
        ValueError: operations of one of these names have a rule already.
    """

    def add(function: RuleFunction) -> RuleFunction:
        register_maker(names, partial(_build, function), looks_around)
        return function

    return add


def register_maker(names: Iterable[str], maker: RuleMaker, looks_around: bool = False) -> None:
    """As `register`, for a function that returns complete rules."""
    for name in names:
        if name in _makers:
            raise ValueError(f"operations called '{name}' have a sharding rule already")
        _makers[name] = maker
        if looks_around:
            _looks_around.add(name)


def register_without_rule(*names: str) -> None:
    """Declare that nothing is propagated through operations called `names`, so that nobody need be warned."""
    _without_rule.update(names)


def sharding_rule(op: Operation, conservative: bool = False) -> OpShardingRule | None:
    """The sharding rule of `op`, or None if it has none; a warning is given once for each unknown operation.

    A `conservative` rule lets nothing be propagated to a dimension that the axes may not divide. Operations with
    dynamic shapes have no rule.
    """
    given = op.attributes.get(SHARDING_RULE)
    if isinstance(given, OpShardingRuleAttr):
        return given.data
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    maker = _makers.get(name)
    if maker is None:
        return None if name in _without_rule else _own_rule(op, name)
    if name in _looks_around:
        return _make(maker, op, conservative)
    key = (
        name,
        conservative,
        tuple(op.operand_types),
        tuple(op.result_types),
        tuple(op.properties.items()),
        tuple(item for item in op.attributes.items() if "." not in item[0]),
    )
    if key not in _remembered:
        _remembered[key] = _make(maker, op, conservative)
    return _remembered[key]


def _make(maker: RuleMaker, op: Operation, conservative: bool) -> OpShardingRule | None:
    if not all(_is_static(type_) for type_ in (*op.operand_types, *op.result_types)):
        return None
    return _share(maker(op, conservative))


def _build(function: RuleFunction, op: Operation, conservative: bool) -> OpShardingRule | None:
    builder = RuleBuilder.of(op, conservative)
    try:
        function(op, builder)
    except NoRule as reason:
        if reason.args:
            _warn_once(op, str(reason))
        return None
    return builder.build()


def _own_rule(op: Operation, name: str) -> OpShardingRule | None:
    if (trait := op.get_trait(ShardingRuleInterface)) is not None:
        return _share(trait.sharding_rule(op))
    needs_none = (ShardableDataFlow, IsTerminator)
    if not any(op.has_trait(trait, value_if_unregistered=False) for trait in needs_none):
        _warn_once(op, f"op '{name}' is unknown to SDY sharding rule registry")
    return None


def _share(rule: OpShardingRule | None) -> OpShardingRule | None:
    return None if rule is None else _shared.setdefault(rule, rule)


def _is_static(type_: Attribute) -> bool:
    return not isinstance(type_, TensorType) or type_.has_static_shape()


def _warn_once(op: Operation, message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warn(op, message)
