"""Operation -> sharding rule: the one place that knows which rule an operation has.

A rule given in the program, as the attribute `sdy.sharding_rule`, wins. Otherwise it is made by the function that is
registered for the operation's name, or by the operation itself through the trait `ShardingRuleInterface`:

    @register("mine.scale")
    def scale(op: Operation, rule: RuleBuilder) -> None:
        rule.add_pointwise(shape_of(op.results[0]))

Operations that are equal but for the values they work on share one rule, so that the layers of a deep model cost what
one layer does, and so that work which depends on a rule alone can be remembered by it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.ir import Attribute, Operation

from sdy.diagnostics import warn
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.interfaces import ShardableDataFlow, ShardingRuleInterface
from sdy.ir.operation_key import MemoizedByKey, MemoizedByResultType
from sdy.ir.traits import has_trait, is_terminator, trait_of
from sdy.plugins import plugin_dialect
from sdy.rule import OpShardingRule
from sdy.rules.builder import Factors, RuleBuilder
from sdy.warning_categories import UnknownOperationWarning

RuleFunction = Callable[[Any, RuleBuilder], None]
"""Adds an operation's factors to a builder made for it, or raises `NoRule`."""

RuleFunctionT = TypeVar("RuleFunctionT", bound=RuleFunction)

Movement = Callable[[Any, Factors], None]
"""The rule of an operation whose result has at each place one element of the operand; it says which one as well."""

MovementT = TypeVar("MovementT", bound=Movement)

RuleMaker = Callable[[Any, bool], OpShardingRule | None]
"""(operation, conservative) -> its rule."""

T = TypeVar("T")


class NoRule(Exception):  # noqa: N818  (not an error: most programs have such operations)
    """The operation has no rule, so nothing is propagated through it. The reason, if any, is worth a warning."""


_FILES = {"arith": "arith", "chlo": "chlo", "linalg": "linalg", "math": "arith", "tensor": "tensor"}
"""Dialect -> the file with the rules of its operations, which is loaded when the first of them is met."""

_met = {"builtin", "func", "sdy", "stablehlo"}
"""The dialects whose rules are loaded, as they are for these with this package."""

_makers: dict[str, RuleMaker] = {}
_looks_around: set[str] = set()
_by_result: set[str] = set()
_elementwise: set[str] = set()
_movements: dict[str, Movement] = {}
_without_rule: set[str] = set()
_warned: set[str] = set()


def register(
    *names: str, looks_around: bool = False, by_result: bool = False, elementwise: bool = False
) -> Callable[[RuleFunctionT], RuleFunctionT]:
    """A decorator that makes a function the rule of the operations called `names`.

    What it decides may depend on the operation's name, its attributes without a dialect's prefix, and its types. One
    that also looks at what defines or uses the operation's values, or into its regions, `looks_around`; one that is
    decided by the name and the type of the only result alone is found faster `by_result`. Operations that are
    `elementwise` are propagated through before others; those with the trait `Elementwise` are so without being told.

    Raises:
        ValueError: operations of one of these names have a rule already.
    """

    def add(function: RuleFunctionT) -> RuleFunctionT:
        register_maker(names, partial(build, function), looks_around)
        if elementwise:
            _elementwise.update(names)
        if by_result:
            _by_result.update(names)
        return function

    return add


def register_maker(names: Iterable[str], maker: RuleMaker, looks_around: bool = False) -> None:
    """As `register`, for a function that returns complete rules."""
    for name in names:
        _load_rules_with(name)
        if name in _makers:
            raise ValueError(f"operations called '{name}' have a sharding rule already")
        _makers[name] = maker
        if looks_around:
            _looks_around.add(name)
    for by_rule in _all_by_rule:
        by_rule.forget_classes()


def register_without_rule(*names: str) -> None:
    """Declare that nothing is propagated through operations called `names`, so that nobody need be warned."""
    _without_rule.update(names)


def register_movement(*names: str) -> Callable[[MovementT], MovementT]:
    """As `register`, for operations that compute nothing: each place of the result has one element of the operand.

    From the function they get their block operation too, and are known to be views.
    """

    def add(function: MovementT) -> MovementT:
        _movements.update(dict.fromkeys(names, function))
        return register(*names)(function)

    return add


def movement(name: str) -> Movement | None:
    """What is registered by `register_movement` for operations called `name`, None if nothing is."""
    return _movements.get(name)


def is_registered_elementwise(op: Operation) -> bool:
    """Whether `op` was registered as elementwise."""
    name = name_of(op)
    _load_rules_with(name)
    return name in _elementwise


def _load_rules_with(name: str) -> None:
    """Load the rules of the dialect of the operation called `name`, if they were not yet."""
    dialect = name.partition(".")[0]
    if dialect in _met:
        return
    _met.add(dialect)
    if dialect in _FILES:
        import_module(f"sdy.rules.{_FILES[dialect]}")
    else:
        plugin_dialect(dialect)


def sharding_rule(op: Operation, conservative: bool = False) -> OpShardingRule | None:
    """The sharding rule of `op`, or None if it has none; a warning is given once for each unknown operation.

    A `conservative` rule lets nothing be propagated to a dimension that the axes may not divide. Operations with
    dynamic shapes have no rule.
    """
    attribute = _RULES[conservative].of(op)
    return attribute and attribute.data


def sharding_rules(
    ops: Iterable[Operation], conservative: bool = False
) -> Iterator[tuple[Operation, OpShardingRuleAttr]]:
    """The operations of `ops` that have a rule, and the attribute that it is written as.

    The same as `sharding_rule` of each, in less time.
    """
    return _RULES[conservative].of_all(ops)


class ByRule(Generic[T]):
    """What `derive` makes of operations that have a rule; asked for at each operation, so that it is fast.

    What it makes of an operation may depend on no more than the rule does. One of these is for the whole process: it
    remembers what was derived, and the registry it.
    """

    def __init__(self, derive: Callable[[Operation, OpShardingRuleAttr], T], conservative: bool = False) -> None:
        self._derive = derive
        self._conservative = conservative
        self._of_class: dict[type[Operation], Callable[[Operation], T | None]] = {}
        self._by_result: dict[type[Operation], MemoizedByResultType[T | None]] = {}
        # To call a method is faster than to call an object.
        self._remembered = MemoizedByKey(self._make).__call__
        _all_by_rule.append(self)

    def of(self, op: Operation) -> T | None:
        """What is derived from `op`; None where it has no rule."""
        given = op.attributes.get(SHARDING_RULE)
        if given is not None and isinstance(given, OpShardingRuleAttr):
            return self._derive(op, given)
        return (self._of_class.get(op.__class__) or self.way_of_class(op))(op)

    def way_of_class(self, op: Operation) -> Callable[[Operation], T | None]:
        """As `of`, for operations of the class of `op` to which no rule was given."""
        way = self._of_class.get(op.__class__)
        if way is None:
            way = self._of_class[op.__class__] = self._find_way_of_class(op)
        return way

    def known_by_result(self, op_class: type[Operation]) -> Mapping[int, T | None]:
        """What was derived so far for a class whose way was found, by the `id` of the type of the only result.

        Without what depends on more than that.
        """
        remembered = self._by_result.get(op_class)
        return {} if remembered is None else remembered.known

    def of_all(self, ops: Iterable[Operation]) -> Iterator[tuple[Operation, T]]:
        """The operations of `ops` that have a rule, and what is derived from each."""
        of_classes = self._of_class
        for op in ops:
            of_class = of_classes.get(op.__class__)
            if of_class is _without:
                continue
            derived = self.of(op) if of_class is None or op.attributes else of_class(op)
            if derived is not None:
                yield op, derived

    def forget_classes(self) -> None:
        """Forget what is known of classes, since another operation was registered."""
        self._of_class.clear()
        self._by_result.clear()

    def _find_way_of_class(self, op: Operation) -> Callable[[Operation], T | None]:
        """How what is derived from operations of the class of `op` is found."""
        if isinstance(op, UnregisteredOp):
            return self._of_unregistered
        _load_rules_with(op.name)
        if op.name in _makers:
            if op.name in _looks_around:
                return self._make
            if op.name not in _by_result:
                return self._remembered
            remembered = self._by_result[op.__class__] = MemoizedByResultType(self._make_by_result)
            return remembered.__call__
        return self._way_without_function(op)

    def _of_unregistered(self, op: Operation) -> T | None:
        _load_rules_with(name_of(op))
        return self._make(op) if name_of(op) in _makers else self._way_without_function(op)(op)

    def _make(self, op: Operation) -> T | None:
        if not all(_is_static(value.type) for value in (*op.operands, *op.results)):
            return None
        return self._from_rule(op, _makers[name_of(op)](op, self._conservative))

    def _make_by_result(self, op: Operation) -> T | None:
        return self._from_rule(op, _makers[op.name](op, self._conservative)) if _is_static(op.results[0].type) else None

    def _way_without_function(self, op: Operation) -> Callable[[Operation], T | None]:
        """How it is found for operations for which no function is registered."""
        if has_trait(op, ShardingRuleInterface):
            return self._of_own_rule
        needs_none = name_of(op) in _without_rule or has_trait(op, ShardableDataFlow) or is_terminator(op)
        return _without if needs_none else _unknown

    def _of_own_rule(self, op: Operation) -> T | None:
        trait = trait_of(op, ShardingRuleInterface)
        return None if trait is None else self._from_rule(op, trait.sharding_rule(op))

    def _from_rule(self, op: Operation, rule: OpShardingRule | None) -> T | None:
        return None if rule is None else self._derive(op, OpShardingRuleAttr.of(rule))


_all_by_rule: list[ByRule[Any]] = []


def _rule_itself(op: Operation, rule: OpShardingRuleAttr) -> OpShardingRuleAttr:
    return rule


_RULES = {conservative: ByRule(_rule_itself, conservative) for conservative in (False, True)}


def name_of(op: Operation) -> str:
    """The name of `op`, whether its dialect is known or not."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def build(function: RuleFunction, op: Operation, conservative: bool) -> OpShardingRule | None:
    """The rule that `function` gives `op`, None where it has no rule; a reason is warned of once."""
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


def _unknown(op: Operation) -> None:
    _warn_once(op, f"op '{name_of(op)}' is unknown to SDY sharding rule registry")


def _is_static(type_: Attribute) -> bool:
    return not isinstance(type_, TensorType) or type_.has_static_shape()


def _warn_once(op: Operation, message: str) -> None:
    if message not in _warned:
        warn(op, message, category=UnknownOperationWarning)
        _warned.add(message)
