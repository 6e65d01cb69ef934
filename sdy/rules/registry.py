"""The registry of sharding rules, by operation name.

A rule in the program, the attribute `sdy.sharding_rule`, takes precedence. Otherwise the rule is built by the function
that is registered for the operation's name, or by the operation itself through the trait `ShardingRuleInterface`:

    @register("mine.scale")
    def scale(op: Operation, rule: RuleBuilder) -> None:
        rule.add_pointwise(shape_of(op.results[0]))

Operations that are equal except for their operands share one rule: building rules for a deep model then costs as much
as for one layer, and results that depend only on a rule can be memoized by it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Generic, TypeVar

from xdsl.dialects.builtin import TensorType, UnregisteredOp
from xdsl.ir import Attribute, Operation

from sdy.diagnostics import UnknownOperationWarning, warn
from sdy.dialect.attributes import SHARDING_RULE, OpShardingRuleAttr
from sdy.dialect.interfaces import ShardableDataFlow, ShardingRuleInterface
from sdy.ir.fast_access import has_trait, is_terminator, trait_of
from sdy.ir.operation_key import MemoizedByKey, MemoizedByResultType
from sdy.plugins import plugin_dialect
from sdy.rule import OpShardingRule
from sdy.rules.builder import Factors, RuleBuilder

RuleFunction = Callable[[Any, RuleBuilder], None]
"""A function that adds an operation's factors to a builder, or raises `NoRule`."""

RuleFunctionT = TypeVar("RuleFunctionT", bound=RuleFunction)

Movement = Callable[[Any, Factors], None]
"""The rule function of a data-movement operation, whose result elements are elements of the operand; it also defines
which ones."""

MovementT = TypeVar("MovementT", bound=Movement)

CompleteRuleFunction = Callable[[Any, bool], OpShardingRule | None]
"""A function (operation, conservative) -> rule."""

T = TypeVar("T")


class NoRule(Exception):  # noqa: N818  (not an error: most programs have such operations)
    """The operation has no rule, so no sharding propagates through it. A message, if any, is reported as a warning."""


_FILES = {
    "arith": "other_dialects",
    "chlo": "other_dialects",
    "linalg": "linalg",
    "math": "other_dialects",
    "tensor": "tensor",
}
"""The file with the rules of each dialect, which is loaded at the first lookup of one of its operations."""

_met = {"builtin", "func", "sdy", "stablehlo"}
"""The dialects whose rules are loaded; initially those that this package imports."""

_makers: dict[str, CompleteRuleFunction] = {}
_looks_around: set[str] = set()
_by_result: set[str] = set()
_elementwise: set[str] = set()
_movements: dict[str, Movement] = {}
_without_rule = {
    "builtin.module",
    "func.func",
    "func.call",
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.constant",
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.manual_computation",
    "sdy.mesh",
    "sdy.propagation_barrier",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.reshard",
    "sdy.sharded_to_unreduced",
    "sdy.sharding_group",
    "stablehlo.after_all",
    "stablehlo.case",
    "stablehlo.constant",
    "stablehlo.create_token",
    "stablehlo.get_tuple_element",
    "stablehlo.infeed",
    "stablehlo.iota",
    "stablehlo.optimization_barrier",
    "stablehlo.outfeed",
    "stablehlo.partition_id",
    "stablehlo.recv",
    "stablehlo.send",
    "stablehlo.while",
}
"""Operations through which no sharding propagates, or which propagation handles separately."""
_warned: set[str] = set()


def register(
    *names: str, looks_around: bool = False, by_result: bool = False, elementwise: bool = False
) -> Callable[[RuleFunctionT], RuleFunctionT]:
    """Decorate a function that adds the factors of the operations `names`.

    The rule may depend on the operation's name, its attributes without a dialect prefix, and its types. The options
    declare other dependencies:

    Args:
        *names: The operation names.
        looks_around: The rule also depends on the definers or users of the operation's values, or on its regions.
        by_result: The rule depends only on the name and the type of the only result; lookups are then faster.
        elementwise: Shardings propagate through the operations in the first stage; implied by the trait `Elementwise`.

    Raises:
        ValueError: An operation name has a rule already.
    """

    def add(function: RuleFunctionT) -> RuleFunctionT:
        register_complete_rule(names, partial(build, function), looks_around)
        if elementwise:
            _elementwise.update(names)
        if by_result:
            _by_result.update(names)
        return function

    return add


def register_complete_rule(names: Iterable[str], function: CompleteRuleFunction, looks_around: bool = False) -> None:
    """Register a function that returns complete rules; see `register`."""
    for name in names:
        _load_dialect_of(name)
        if name in _makers:
            raise ValueError(f"operations called '{name}' have a sharding rule already")
        _makers[name] = function
        if looks_around:
            _looks_around.add(name)
    for by_rule in _all_by_rule:
        by_rule.forget_classes()


def register_without_rule(*names: str) -> None:
    """Declare that no sharding propagates through the operations `names`, which suppresses the warning."""
    _without_rule.update(names)


def register_movement(*names: str) -> Callable[[MovementT], MovementT]:
    """Decorate the rule function of data-movement operations: each result element is an element of the operand.

    The function also defines the operations' block operation, and makes them views.
    """

    def add(function: MovementT) -> MovementT:
        _movements.update(dict.fromkeys(names, function))
        return register(*names)(function)

    return add


def movement(name: str) -> Movement | None:
    """Return the function that `register_movement` registered for the operation `name`, or None."""
    return _movements.get(name)


def is_registered_elementwise(op: Operation) -> bool:
    """Return whether `op` was registered as elementwise."""
    name = name_of(op)
    _load_dialect_of(name)
    return name in _elementwise


def _load_dialect_of(name: str) -> None:
    """Load the rules of the dialect of the operation `name`, once."""
    dialect = name.partition(".")[0]
    if dialect in _met:
        return
    _met.add(dialect)
    if dialect in _FILES:
        import_module(f"sdy.rules.{_FILES[dialect]}")
    else:
        plugin_dialect(dialect)


def sharding_rule(op: Operation, conservative: bool = False) -> OpShardingRule | None:
    """Return the sharding rule of `op`.

    Warns once for each unknown operation.

    Args:
        op: The operation.
        conservative: Build a rule that propagates no axis to a dimension that it may not divide.

    Returns:
        The rule, or None; operations with dynamic shapes have no rule.
    """
    attribute = _RULES[conservative].of(op)
    return attribute and attribute.data


def sharding_rules(
    ops: Iterable[Operation], conservative: bool = False
) -> Iterator[tuple[Operation, OpShardingRuleAttr]]:
    """Yield the operations of `ops` that have a rule, with the rule as an attribute.

    Equivalent to `sharding_rule` of each operation, but faster.
    """
    return _RULES[conservative].of_all(ops)


def remove_sharding_rules(ops: Iterable[Operation]) -> None:
    """Remove the rules that `sharding_rules` can rebuild from the attributes of `ops`; custom rules stay."""
    for op in ops:
        rule = op.attributes.get(SHARDING_RULE)
        if isinstance(rule, OpShardingRuleAttr) and not rule.data.is_custom:
            del op.attributes[SHARDING_RULE]


class ByRule(Generic[T]):
    """A memoized function of operations that have a rule. Optimized: propagation calls it for each operation.

    Instances live as long as the process: the registry refers to them.

    Args:
        derive: Computes the value from an operation and its rule; it may depend only on properties of the operation on
            which the rule depends.
        conservative: Use conservative rules.
    """

    def __init__(self, derive: Callable[[Operation, OpShardingRuleAttr], T], conservative: bool = False) -> None:
        self._derive = derive
        self._conservative = conservative
        self._of_class: dict[type[Operation], Callable[[Operation], T | None]] = {}
        self._by_result: dict[type[Operation], MemoizedByResultType[T | None]] = {}
        # Calling a bound method is faster than calling an object.
        self._remembered = MemoizedByKey(self._make).__call__
        _all_by_rule.append(self)

    def of(self, op: Operation) -> T | None:
        """Return the value derived from the rule of `op`; None if the operation has no rule."""
        attribute = op.attributes.get(SHARDING_RULE)
        if attribute is not None and isinstance(attribute, OpShardingRuleAttr):
            return self._derive(op, attribute)
        return (self._of_class.get(op.__class__) or self.lookup_for_class(op))(op)

    def lookup_for_class(self, op: Operation) -> Callable[[Operation], T | None]:
        """Return the equivalent of `of` for operations of the class of `op` without a rule attribute."""
        lookup = self._of_class.get(op.__class__)
        if lookup is None:
            lookup = self._of_class[op.__class__] = self._create_lookup(op)
        return lookup

    def known_by_result(self, op_class: type[Operation]) -> Mapping[int, T | None]:
        """Return the memoized values of a class registered `by_result`, by the `id` of the result type.

        Empty for other classes, and for classes that were not looked up yet.
        """
        remembered = self._by_result.get(op_class)
        return {} if remembered is None else remembered.known

    def of_all(self, ops: Iterable[Operation]) -> Iterator[tuple[Operation, T]]:
        """Yield the operations of `ops` that have a rule, with their values."""
        of_classes = self._of_class
        for op in ops:
            of_class = of_classes.get(op.__class__)
            if of_class is _without:
                continue
            derived = self.of(op) if of_class is None or op.attributes else of_class(op)
            if derived is not None:
                yield op, derived

    def forget_classes(self) -> None:
        """Drop the lookups of classes after the registration of another operation."""
        self._of_class.clear()
        self._by_result.clear()

    def _create_lookup(self, op: Operation) -> Callable[[Operation], T | None]:
        """Create the lookup for operations of the class of `op`."""
        if isinstance(op, UnregisteredOp):
            return self._of_unregistered
        _load_dialect_of(op.name)
        if op.name in _makers:
            if op.name in _looks_around:
                return self._make
            if op.name not in _by_result:
                return self._remembered
            remembered = self._by_result[op.__class__] = MemoizedByResultType(self._make_by_result)
            return remembered.__call__
        return self._lookup_without_function(op)

    def _of_unregistered(self, op: Operation) -> T | None:
        _load_dialect_of(name_of(op))
        return self._make(op) if name_of(op) in _makers else self._lookup_without_function(op)(op)

    def _make(self, op: Operation) -> T | None:
        if not all(_is_static(value.type) for value in (*op.operands, *op.results)):
            return None
        return self._from_rule(op, _makers[name_of(op)](op, self._conservative))

    def _make_by_result(self, op: Operation) -> T | None:
        return self._from_rule(op, _makers[op.name](op, self._conservative)) if _is_static(op.results[0].type) else None

    def _lookup_without_function(self, op: Operation) -> Callable[[Operation], T | None]:
        """Return the lookup for operations without a registered function."""
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


def _identity(op: Operation, rule: OpShardingRuleAttr) -> OpShardingRuleAttr:
    return rule


_RULES = {conservative: ByRule(_identity, conservative) for conservative in (False, True)}


def name_of(op: Operation) -> str:
    """Return the name of `op`, registered or not."""
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def build(function: RuleFunction, op: Operation, conservative: bool) -> OpShardingRule | None:
    """Build the rule of `op` with `function`; None if it raises `NoRule`, whose message is reported once."""
    builder = RuleBuilder.of(op, conservative)
    try:
        function(op, builder)
    except NoRule as reason:
        if reason.args:
            _warn_once(op, str(reason))
        return None
    return builder.build()


def _without(op: Operation) -> None:
    """Return None: the lookup of operations that need no rule."""


def _unknown(op: Operation) -> None:
    _warn_once(op, f"op '{name_of(op)}' is unknown to SDY sharding rule registry")


def _is_static(type_: Attribute) -> bool:
    return not isinstance(type_, TensorType) or type_.has_static_shape()


def _warn_once(op: Operation, message: str) -> None:
    if message not in _warned:
        warn(op, message, category=UnknownOperationWarning)
        _warned.add(message)
