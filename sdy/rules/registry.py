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

from sdy.diagnostics import warn
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.interfaces import ShardableDataFlow, ShardingRuleInterface
from sdy.dialect.signature import Remembered
from sdy.dialect.traits import has_trait, is_terminator, trait_of
from sdy.rule import OpShardingRule
from sdy.rules.builder import RuleBuilder

RuleFunction = Callable[[Any, RuleBuilder], None]
"""Adds an operation's factors to a builder made for it, or raises `NoRule`."""

RuleMaker = Callable[[Any, bool], OpShardingRule | None]
"""(operation, conservative) -> its rule."""

RuleOf = Callable[[Operation], OpShardingRuleAttr | None]
"""Operation -> its rule, as the attribute that it is written as."""


class NoRule(Exception):  # noqa: N818  (not an error: most programs have such operations)
    """The operation has no rule, so nothing is propagated through it. The reason, if any, is worth a warning."""


_makers: dict[str, RuleMaker] = {}
_looks_around: set[str] = set()
_elementwise: set[str] = set()
_without_rule: set[str] = set()
_warned: set[str] = set()


def register(
    *names: str, looks_around: bool = False, elementwise: bool = False
) -> Callable[[RuleFunction], RuleFunction]:
    """A decorator that makes a function the rule of the operations called `names`.

    What it decides may depend on the operation's name, its attributes without a dialect's prefix, and its types. One
    that also looks at what defines or uses the operation's values, or into its regions, `looks_around`. Operations
    that are `elementwise` are propagated through before others; those of dialects with the trait `Elementwise` are so
    without being told.

    Raises:
        ValueError: operations of one of these names have a rule already.
    """

    def add(function: RuleFunction) -> RuleFunction:
        register_maker(names, partial(_build, function), looks_around)
        if elementwise:
            _elementwise.update(names)
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
    for rules in _RULES.values():
        rules.forget_classes()


def register_without_rule(*names: str) -> None:
    """Declare that nothing is propagated through operations called `names`, so that nobody need be warned."""
    _without_rule.update(names)


def is_registered_elementwise(op: Operation) -> bool:
    """Whether `op` was registered as elementwise."""
    return name_of(op) in _elementwise


def sharding_rule(op: Operation, conservative: bool = False) -> OpShardingRule | None:
    """The sharding rule of `op`, or None if it has none; a warning is given once for each unknown operation.

    A `conservative` rule lets nothing be propagated to a dimension that the axes may not divide. Operations with
    dynamic shapes have no rule.
    """
    attribute = _RULES[conservative](op)
    return attribute and attribute.data


def sharding_rules(conservative: bool = False) -> RuleOf:
    """`sharding_rule` for many operations: a function from each to the attribute that its rule is written as."""
    return _RULES[conservative]


class _Rules:
    """The rules of all operations, either conservative or not; asked for at each operation, so that it is fast."""

    def __init__(self, conservative: bool) -> None:
        self._conservative = conservative
        self._of_class: dict[type[Operation], RuleOf] = {}
        self._remembered = Remembered(self._make)

    def __call__(self, op: Operation) -> OpShardingRuleAttr | None:
        if op.attributes and isinstance(given := op.attributes.get(SHARDING_RULE), OpShardingRuleAttr):
            return given
        of_class = self._of_class.get(op.__class__)
        if of_class is None:
            of_class = self._of_class[op.__class__] = self._rule_of_class(op)
        return of_class(op)

    def forget_classes(self) -> None:
        """Forget what is known of classes, since another operation was registered."""
        self._of_class.clear()

    def _rule_of_class(self, op: Operation) -> RuleOf:
        """How the rule of operations of the class of `op` is found."""
        if isinstance(op, UnregisteredOp):
            return self._of_unregistered
        if op.name in _makers:
            return self._make if op.name in _looks_around else self._remembered
        return _without if op.name in _without_rule else _own_rule

    def _of_unregistered(self, op: Operation) -> OpShardingRuleAttr | None:
        return self._make(op) if name_of(op) in _makers else _own_rule(op)

    def _make(self, op: Operation) -> OpShardingRuleAttr | None:
        if not all(_is_static(value.type) for value in (*op.operands, *op.results)):
            return None
        return _share(_makers[name_of(op)](op, self._conservative))


_RULES = {conservative: _Rules(conservative) for conservative in (False, True)}


def name_of(op: Operation) -> str:
    """The name of `op`, whether its dialect is known or not."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def _build(function: RuleFunction, op: Operation, conservative: bool) -> OpShardingRule | None:
    builder = RuleBuilder.of(op, conservative)
    try:
        function(op, builder)
    except NoRule as reason:
        if reason.args:
            _warn_once(op, str(reason))
        return None
    return builder.build()


def _without(op: Operation) -> None:
    """The rule of operations without one."""


def _own_rule(op: Operation) -> OpShardingRuleAttr | None:
    if (trait := trait_of(op, ShardingRuleInterface)) is not None:
        return _share(trait.sharding_rule(op))
    if not (name_of(op) in _without_rule or has_trait(op, ShardableDataFlow) or is_terminator(op)):
        _warn_once(op, f"op '{name_of(op)}' is unknown to SDY sharding rule registry")
    return None


def _share(rule: OpShardingRule | None) -> OpShardingRuleAttr | None:
    return None if rule is None else OpShardingRuleAttr.of(rule)


def _is_static(type_: Attribute) -> bool:
    return not isinstance(type_, TensorType) or type_.has_static_shape()


def _warn_once(op: Operation, message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warn(op, message)
