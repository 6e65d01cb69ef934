"""The values of a block of a Python function: their names and expressions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import NameLoc
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from sdy.diagnostics import Location
from sdy.dialect.ops import ReshardOp, ShardingConstraintOp
from sdy.ir.fast_access import is_terminator
from sdy.passes.common.properties import is_pure
from sdy.passes.python.broadcasting import cover, indexed_source, is_implicit
from sdy.passes.python.device_axes import DeviceAxes
from sdy.passes.python.device_index import entry_of_device, is_part_of_entry
from sdy.passes.python.expressions import (
    Expression,
    Item,
    atom,
    call,
    definition,
    index,
    method,
    sizes,
    tuple_of,
)
from sdy.passes.python.layers import Layers, layers_of
from sdy.passes.python.literals import Array, constant, dtype_of, dtype_text, is_listed, known_elements, number
from sdy.passes.python.names import LibraryCall, LibraryFunction, Names, assigned_names, identifier, place_of
from sdy.passes.python.ranges import Ranges
from sdy.passes.python.statements import Statements, is_same_line
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo import ReduceOp, TransposeOp
from sdy.stablehlo.broadcast import BroadcastInDimOp
from sdy.stablehlo.elementwise import ConvertOp
from sdy.stablehlo.shape import ReshapeOp

_INLINED = 32
"""The longest expression that is written at its only use, and not assigned to a variable."""

_IN_CALL, _IN_LINE = 64, 40
"""The most characters of the operands that a call, or an operator or a method, takes in because they come from its line
of the source. The arguments of a call may be broken into lines."""

_METHODS = (BroadcastInDimOp, ConvertOp, ReduceOp, ReshapeOp, TransposeOp)
"""The operations that are printed as methods and indices of their operand."""

_UNKNOWN = 8
"""The length that is expected of an operand that is not written yet."""

_Line = tuple[str, int]
"""A file and the number of a line."""

Printer = Callable[[Any, "Scope"], Expression | None]
"""A function from an operation to its expression, a tuple if it has several results; None if it wrote statements."""


@dataclass
class Writer:
    """State of a file: the table of operations, the axes of devices, and the parts that its functions need."""

    printers: Mapping[type[Operation], Printer]
    axes: DeviceAxes
    broadcasting: Set[type[Operation]]
    """The operations whose operands NumPy's rules broadcast."""
    library: Mapping[str, LibraryFunction] = field(default_factory=dict[str, LibraryFunction])
    """The functions of the module that are JAX's own."""
    patterns: dict[Operation, LibraryCall] = field(default_factory=dict[Operation, LibraryCall])
    """The calls of functions of JAX that operations stand for, by the last of the operations."""
    functions: dict[str, str] = field(default_factory=dict[str, str])
    """The Python name of each function of the module."""
    ranges: Ranges = field(default_factory=Ranges)
    """The ranges of the integers that are known."""
    names: Names = field(default_factory=Names)
    """The names of the file."""
    layers: list[list[str]] = field(default_factory=list[list[str]])
    """The lines of the functions of repeated layers."""
    helpers: set[str] = field(default_factory=set[str])
    """The functions of `HELPERS` that the file needs."""
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    """Large constants by their names in the file."""
    unsupported: dict[str, str] = field(default_factory=dict[str, str])
    """The operations without an equivalent in JAX, and the reason."""

    def __post_init__(self) -> None:
        self._assigned: dict[Block, Mapping[_Line, Sequence[SSAValue]]] = {}
        self.last_of_pattern = {op: last for last, each in self.patterns.items() for op in each.inside}
        """The last operation of the pattern of each operation in one."""

    def keep_patterns_within(self, layers: Mapping[Operation, int]) -> None:
        """Forget the patterns whose operations are not all in one layer, or outside of all, given the layer of each."""
        for last, each in [*self.patterns.items()]:
            if len({layers.get(op) for op in each.inside}) > 1:
                del self.patterns[last]
        self.last_of_pattern = {op: last for op, last in self.last_of_pattern.items() if last in self.patterns}

    def called(self, op: Operation) -> str:
        """Return the name of JAX's function whose call `op` is or ends, or an empty string without one."""
        if (pattern := self.patterns.get(op)) is not None:
            return pattern.function.name
        known = self.library.get(op.callee.string_value()) if isinstance(op, CallOp) else None
        return known.name if known is not None else ""

    def assigned_values(self, block: Block) -> Mapping[_Line, Sequence[SSAValue]]:
        """Return the values of a block that each source line computes for other lines."""
        if block not in self._assigned:
            values: dict[_Line, list[SSAValue]] = {}
            for value in (result for op in block.ops for result in op.results):
                if (line := _assigned_at(value)) is not None:
                    values.setdefault(line, []).append(value)
            self._assigned[block] = values
        return self._assigned[block]

    def constant(self, values: Array) -> Expression:
        """Return an array: a large one by its name in the file."""
        if is_listed(values):
            return constant(values)
        name = f"CONSTANT_{len(self.constants) + 1}"
        self.constants[name] = values
        return Expression(name)


class Scope:
    """A block of statements. A nested function has its own, which sees the values around it."""

    def __init__(
        self,
        writer: Writer,
        names: Names,
        depth: int = 1,
        around: Mapping[SSAValue, Expression] | None = None,
        parameters: Set[SSAValue] = frozenset(),
        *,
        place: Location | None = None,
        folds: bool = False,
    ):
        self.writer = writer
        self.names = names
        self.statements = Statements(depth, place)
        self._values = dict(around or {})
        self._folds = folds
        self._parameters = {*parameters}
        self.passed: set[SSAValue] = set()
        """The values that are passed to functions of repeated layers."""

    def inner(self) -> "Scope":
        """Return the scope of a nested function, to be written with `define`."""
        depth, place = self.statements.depth + 1, self.statements.place
        return Scope(self.writer, Names(self.names), depth, self._values, self._parameters, place=place)

    def bind(self, value: SSAValue, expression: Expression | str) -> None:
        """Use `expression` for `value`."""
        self._values[value] = atom(expression)

    def name(self, value: SSAValue, default: str = "value") -> str:
        """Give `value` a name, and return it."""
        name = self.names.new(self._suggested(value) or default)
        self.bind(value, name)
        return name

    def parameter(self, value: SSAValue, default: str) -> str:
        """Give a value of the scope around the function a name, by which the function knows it, and return it."""
        name = self.names.new(default)
        self.bind(value, name)
        self._parameters.add(value)
        return name

    def source(self, value: SSAValue) -> SSAValue:
        """Return the operand of the reshapes that define `value`, or `value` itself."""
        while isinstance(op := self.definition(value), ReshapeOp):
            value = op.operand
        return value

    def definition(self, value: SSAValue) -> Operation | None:
        """Return the operation that defines `value`, unless `value` is a parameter of the function."""
        return value.op if isinstance(value, OpResult) and value not in self._parameters else None

    def of(self, value: SSAValue) -> Expression:
        """Return an expression of the whole array `value`."""
        known = self._values.get(value)
        if known is not None:
            return known
        if (elements_ := known_elements(value)) is not None:
            return self.writer.constant(elements_)
        if (entry := entry_of_device(value, self.writer.axes)) is not None:
            dtype = dtype_of(value)
            return entry if dtype == np.int32 else method(entry, "astype", dtype_text(dtype))
        if isinstance(value, OpResult) and isinstance(value.op, BroadcastInDimOp):
            whole = self.writer.printers[BroadcastInDimOp](value.op, self)
            assert whole is not None
            return whole
        raise NotImplementedError(f"a value of type {value.type} has no equivalent")

    def filling(self, value: SSAValue) -> Expression:
        """Return an expression of `value` where a scalar stands for an array of equal elements."""
        array = known_elements(value)
        if array is None or not array.size or not (array == array.flat[0]).all():
            return self.of(value)
        return self.writer.constant(array.reshape(-1)[0])

    def together(self, values: Sequence[SSAValue], typed: Sequence[SSAValue] | None = None) -> list[Expression]:
        """Return expressions that NumPy's rules broadcast to the shape of `values`, which have one shape.

        Args:
            values: The operands of an elementwise operation.
            typed: The operands that determine the element type of the result, by default all.
        """
        wholes = [value for value in values if not self._is_implicit(value)]
        if not wholes and not cover(values, self._parameters):
            return [*map(self.of, values)]
        typed = values if typed is None else typed
        numbers_need_type = not any(value in wholes or known_elements(value) is None for value in typed)
        return [
            self.of(value) if value in wholes else self._small(value, numbers_need_type and value in typed)
            for value in values
        ]

    def write_body(self, block: Block, results: Sequence[SSAValue] | None = None) -> None:
        """Write the statements of `block`, and the return of `results` or of the operands of its terminator."""
        assert block.last_op is not None
        layers = {each.operations[0][0]: each for each in layers_of(block, self.writer.axes)} if self._folds else {}
        numbers = enumerate(layer for each in layers.values() for layer in each.operations)
        in_layers = {op: number for number, layer in numbers for op in layer}
        self.writer.keep_patterns_within(in_layers)
        self.passed = {value for each in layers.values() for values in each.parameters for value in values}
        for op in block.ops:
            if op in layers:
                self._write_layers(layers[op])
            elif op is not block.last_op and op not in in_layers:
                self._write(op)
        self.write_return(block.last_op.operands if results is None else results)

    def write_operations(self, ops: Iterable[Operation]) -> None:
        """Write the statements of `ops`."""
        for op in ops:
            self._write(op)

    def write_return(self, values: Sequence[SSAValue]) -> None:
        """Write the return of one value, or of a tuple."""
        returned = [*map(self.of, values)]
        self.write("return", returned[0] if len(returned) == 1 else tuple_(returned))

    def _write_layers(self, layers: Layers) -> None:
        """Write a call of one function for each layer."""
        scope = Scope(self.writer, Names(self.writer.names))
        name = self.names.new("layer")
        names = [plain_name(self.of(value).text) for value in layers.parameters[0]]
        example = layers.parameters[layers.example]
        parameters = [scope.parameter(value, known) for value, known in zip(example, names, strict=True)]
        scope.write_operations(layers.operations[layers.example])
        scope.write_return(layers.results[layers.example])
        self.writer.layers.append([*definition(name, parameters), *scope.statements.lines()])
        for arguments, results in zip(layers.parameters, layers.results, strict=True):
            self.assign(results, call(name, *map(self.of, arguments)))
            self._parameters.update(results)  # the operations that define them are not in this function

    def define(self, name: str, parameters: Sequence[str], body: "Scope") -> None:
        """Write the function `name` with the statements of `body`."""
        head = f"{self.statements.indent}def {name}({', '.join(parameters)}):"
        self.statements.add(Expression(name), [name], [head, *body.statements.lines()])

    def write(self, target: str, value: Expression) -> None:
        """Write `target = value`, or `return value` for the target "return"."""
        self.statements.add(value, [] if target == "return" else [target])

    def variable(self, text: str, value: Expression) -> Expression:
        """Return a variable: `value` itself, or a new one with a name like `text` to which it is assigned."""
        if value.text.isidentifier():
            return value
        name = self.names.new(text)
        self.write(name, value)
        return Expression(name)

    def unpack(self, names: Sequence[str], value: Expression | str) -> None:
        """Write the assignment of the items of a tuple to several names."""
        self.statements.add(atom(value), names)

    def assign(self, results: Sequence[SSAValue], value: Expression, defaults: Sequence[str] = ()) -> None:
        """Assign `value`, a tuple if there is not exactly one result, to new names of `results`, like `defaults`."""
        defaults = defaults or [*map(self._default_name, results)]
        targets = [self.name(result, default) for result, default in zip(results, defaults, strict=True)]
        self.statements.add(value, targets or ["_"])

    def _write(self, op: Operation) -> None:
        if not any(result.uses for result in op.results) and is_pure(op):
            return
        if all(known_elements(result) is not None for result in op.results) and op.results:
            return
        if isinstance(op, BroadcastInDimOp) and self._is_implicit(op.result):
            return
        if any(entry_of_device(result, self.writer.axes) is not None for result in op.results):
            return
        if is_part_of_entry(op, self.writer.axes):
            return
        if self.writer.last_of_pattern.get(op, op) is not op:
            return
        self.statements.place = place_of(op)
        value = self._printed(op)
        if value is None:
            return
        if len(op.results) == 1 and self._may_inline(op.results[0], value):
            self.bind(op.results[0], value)
        else:
            self.assign(op.results, value)

    def _printed(self, op: Operation) -> Expression | None:
        """Return the expression of `op`; None if its printer wrote statements."""
        if (known := self.writer.patterns.get(op)) is not None:
            return library_call(known.function, [self.of(known.operand)], {})
        printer = self.writer.printers.get(type(op))
        try:
            return self._unsupported(op, "") if printer is None else printer(op, self)
        except NotImplementedError as problem:
            return self._unsupported(op, str(problem))

    def _unsupported(self, op: Operation, reason: str) -> Expression:
        """Return a call that raises, with the name of `op`."""
        self.writer.unsupported[op.name] = reason
        operands: list[Expression] = []
        for operand in op.operands:
            try:
                operands.append(self.of(operand))
            except NotImplementedError:
                operands.append(Expression("None"))
        return call("unsupported", f'"{op.name}"', *operands)

    def _may_inline(self, result: OpResult, value: Expression) -> bool:
        """Return whether `value`, of `result`, is written at its only use, and not assigned to a variable."""
        users = self._users(result)
        if len(users) != 1 or users[0].parent is not result.op.parent or isinstance(result.op, COLLECTIVES):
            return False
        if self._is_returned(result):
            return True
        operand = result
        while isinstance(user := users[0], BroadcastInDimOp) and len(self._users(user.result)) == 1:
            operand, users = user.result, self._users(user.result)
        if isinstance(user, BroadcastInDimOp) and self._is_implicit(user.result):
            return False  # each of its users would repeat `value`
        others = [each for each in user.operands if each is not operand and known_elements(each) is None]
        lengths = [len(self._values[other].text) if other in self._values else _UNKNOWN for other in others]
        is_broken = type(user) not in self.writer.broadcasting and not isinstance(user, _METHODS)
        fits = len(value.text) + sum(lengths) <= (_IN_CALL if is_broken else _IN_LINE)
        if len(value.text) <= _INLINED and not isinstance(result.op, CallOp):
            return fits or is_broken
        place = place_of(result.op)
        return fits and (is_terminator(user) or (place is not None and _is_at(user, place)))

    def _users(self, value: SSAValue) -> list[Operation]:
        """Return the operations that use `value`; those of a pattern once, as its last one."""
        last_of = self.writer.last_of_pattern
        users = [use.operation for use in value.uses]
        patterns = dict.fromkeys(last_of[user] for user in users if user in last_of)
        return [*patterns, *(user for user in users if user not in last_of)]

    def _is_returned(self, value: OpResult) -> bool:
        """Return whether `value` is the only value that its block returns, and has no other use."""
        block = value.op.parent
        last = block.last_op if block is not None else None
        return last is not None and [*last.operands] == [value] and self._users(value) == [last]

    def _suggested(self, value: SSAValue) -> str:
        """Return the variable to which the source line of `value` assigns it, if other lines use `value`."""
        place = _assigned_at(value)
        names = assigned_names(*place) if place is not None else ()
        if place is None or len(names) < 2:
            return names[0] if names else ""
        assert isinstance(value.owner, Operation)
        assert value.owner.parent is not None
        values = self.writer.assigned_values(value.owner.parent)[place]
        return names[values.index(value) % len(names)] if len(values) % len(names) == 0 else ""

    def _default_name(self, value: SSAValue) -> str:
        """Return the name of the operation that defines `value`; a constraint leaves its operand's."""
        if not isinstance(value, OpResult):
            return "value"
        if isinstance(value.op, ShardingConstraintOp | ReshardOp):
            return plain_name(self.of(value.op.operands[0]).text)
        return identifier((self.writer.called(value.op) or value.op.name).rpartition(".")[2])

    def _is_implicit(self, value: SSAValue) -> bool:
        return is_implicit(value, self._parameters, self.writer.broadcasting)

    def _small(self, value: SSAValue, needs_type: bool) -> Expression:
        """Return `value` before its broadcast; a number has a type only if `needs_type`."""
        array = known_elements(value)
        if array is not None:
            text = number(array.flat[0], array.dtype)
            return call(dtype_text(array.dtype), text) if needs_type else text
        broadcast = value.owner
        assert isinstance(broadcast, BroadcastInDimOp)
        source, entries = indexed_source(broadcast, self._parameters) or (broadcast.operand, [])
        whole = self.of(source)
        return index(whole, *entries) if entries else whole


def library_call(
    function: LibraryFunction, arguments: Iterable[Expression], named: Mapping[str, Expression]
) -> Expression:
    """Return a call of a function of JAX with positional arguments and keyword arguments beside its own."""
    keywords = {name: _literal(value) for name, value in function.keywords.items()}
    return call(function.name, *arguments, **keywords, **named)


def _literal(value: Any) -> Item:
    """Return a number, a tuple of numbers, or an element type."""
    if isinstance(value, tuple):
        return sizes(cast(tuple[int, ...], value))
    return dtype_text(cast(np.dtype[Any], value)) if isinstance(value, np.dtype) else str(value)


def tuple_(items: Sequence[Expression]) -> Expression:
    """Return items without parentheses, or a tuple if there are fewer than two."""
    whole = tuple_of(items)
    if len(items) < 2:
        return whole
    return Expression(whole.text[1:-1], whole.precedence, "(", whole.items, ")", spread=True)


def _is_at(op: Operation, place: Location) -> bool:
    return is_same_line(place, place_of(op))


def _assigned_at(value: SSAValue) -> _Line | None:
    """Return the source line that computes `value`, which is the only result of its operation, for other lines."""
    if not isinstance(value, OpResult) or len(value.op.results) > 1 or _is_gradient(value.op):
        return None
    place = place_of(value.op)
    if place is None or known_elements(value) is not None or all(_is_at(use.operation, place) for use in value.uses):
        return None
    return place.filename, place.line


def _is_gradient(op: Operation) -> bool:
    return isinstance(op.location, NameLoc) and "transpose(" in op.location.desc.data


def plain_name(text: str) -> str:
    """Return the variable of an expression without its number; "x" if it is none."""
    return re.sub(r"_\d+(?=_|$)", "", text) or "x" if text.isidentifier() else "x"
