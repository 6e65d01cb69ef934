"""Builder of a list of operations, driven by choices, and of the module around it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from sdy.mesh import Mesh
from small_scope.choices import Choices
from small_scope.shardings import splits
from whole_programs.arrays import Array, dense, numbers_of, random_array
from whole_programs.values import WHOLE, Numbers, Shape, Value, type_text

LARGEST = 600
"""Most elements of a tensor."""


@dataclass
class Module:
    """State that the blocks of a program share."""

    choices: Choices
    mesh: Mesh
    seed: int
    names: "count[int]" = field(default_factory=count)
    arguments: list[str] = field(default_factory=list[str])
    inputs: list[Array] = field(default_factory=list[Array])
    functions: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    """The names of values that are operands."""

    def layout(self, rank: int) -> str:
        """Choose a sharding with axes and sub-axes, closed or open, with priorities and replicated axes."""
        split = self.choices.of(splits(self.mesh, rank))
        free = [name for name in self.mesh.axis_names if all(name != axis.name for axes in split for axis in axes)]
        dims = [", ".join([*map(str, axes), *self.choices.of(((), ("?",)))]) for axes in split]
        with_priorities = self.choices.below(8) == 1
        priorities = [
            self.choices.of(("", "p0", "p1")) if with_priorities and dim not in ("", "?") else "" for dim in dims
        ]
        text = ", ".join(f"{{{dim}}}{priority}" for dim, priority in zip(dims, priorities, strict=True))
        replicated = f', replicated={{"{free[0]}"}}' if free and self.choices.below(8) == 1 else ""
        return f"<@mesh, [{text}]{replicated}>"


@dataclass
class Block:
    """A list of operations, and the values defined so far.

    A closed block, such as a function's body, captures nothing from outside and adds no arguments to the program.
    """

    module: Module
    values: list[Value]
    is_closed: bool = False
    depth: int = 0
    lines: list[str] = field(default_factory=list[str])

    @property
    def choices(self) -> Choices:
        """The source of choices."""
        return self.module.choices

    def name(self) -> str:
        """Return a fresh name."""
        return f"%{next(self.module.names)}"

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        shape: Shape,
        element: str,
        numbers: Numbers = WHOLE,
        properties: str = "",
        regions: Sequence[str] = (),
    ) -> Value:
        """Append an operation with one result."""
        return self.ops(name, operands, [Value("", shape, element, numbers)], properties, regions)[0]

    def ops(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        properties: str = "",
        regions: Sequence[str] = (),
    ) -> list[Value]:
        """Append an operation with results like `results`, under fresh names. One in eight gets a sharding."""
        group = self.name()
        many = len(results) > 1
        named = [
            Value(
                f"{group}#{index}" if many else group,
                result.shape,
                result.element,
                WHOLE if result.is_whole else result.numbers,
            )
            for index, result in enumerate(results)
        ]
        parts = [
            f"{group}:{len(results)}" if many else group,
            f'= "{name}"({", ".join(each.name for each in operands)})',
            f"<{{{properties}}}>" if properties else "",
            f"({', '.join(regions)})" if regions else "",
            self._attribute(named) if name.startswith("stablehlo.") and self.choices.below(8) == 1 else "",
            f": ({types(operands)}) -> ({types(named)})",
        ]
        self.lines.append(" ".join(part for part in parts if part))
        self.module.used |= {each.name for each in operands}
        self.values += named
        return named

    def _attribute(self, results: Sequence[Value]) -> str:
        layouts = ", ".join(self.module.layout(result.rank) for result in results)
        return f"{{sdy.sharding = #sdy.sharding_per_value<[{layouts}]>}}"

    def constrained(self, value: Value) -> Value:
        """Append a sharding constraint on `value`."""
        result = Value(self.name(), value.shape, value.element, value.numbers)
        layout = self.module.layout(value.rank)
        self.lines.append(f"{result.name} = sdy.sharding_constraint {value.name} {layout} : {value.type}")
        self.module.used.add(value.name)
        self.values.append(result)
        return result

    def argument(self, shape: Shape, element: str, array: Array | None = None) -> Value:
        """Add an argument to the program, possibly sharded, with the elements of `array` or random ones."""
        module = self.module
        number = len(module.arguments)
        kind = self.choices.of(("small", "special", "any"))
        if array is None:
            array = random_array(shape, element, kind, (module.seed, number))
        value = Value(f"%arg{number}", shape, element, numbers_of(element, kind))
        attribute = f" {{sdy.sharding = #sdy.sharding{module.layout(len(shape))}}}" if self.choices.below(2) else ""
        module.arguments.append(f"{value.name}: {value.type}{attribute}")
        module.inputs.append(array)
        self.values.append(value)
        return value

    def constant(self, array: Array, element: str) -> Value:
        """Append a constant."""
        type_ = type_text(array.shape, element)
        return self.op(
            "stablehlo.constant",
            (),
            array.shape,
            element,
            numbers_of(element, "small"),
            f"value = {dense(array, element)} : {type_}",
        )

    def scalar(self, literal: str, element: str, numbers: Numbers = WHOLE) -> Value:
        """Append a scalar constant; `literal` may be hexadecimal bits."""
        return self.op(
            "stablehlo.constant", (), (), element, numbers, f"value = dense<{literal}> : {type_text((), element)}"
        )

    def inner(self, values: Sequence[Value] = ()) -> "Block":
        """Return a nested block that also sees `values`."""
        return Block(self.module, [*self.values, *values], self.is_closed, self.depth + 1)

    def region(self, arguments: Sequence[Value], results: Sequence[Value]) -> str:
        """Return the text of this block as a region."""
        head = ", ".join(f"{value.name}: {value.type}" for value in arguments)
        last = f'"stablehlo.return"({", ".join(value.name for value in results)}) : ({types(results)}) -> ()'
        body = "\n".join(f"  {line}" for line in "\n".join([*self.lines, last]).split("\n"))
        return f"{{\n^bb0({head}):\n{body}\n}}" if arguments else f"{{\n{body}\n}}"


def types(values: Sequence[Value]) -> str:
    """Return the types of values as text."""
    return ", ".join(value.type for value in values)


Family = Callable[[Block], object]
