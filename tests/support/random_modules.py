"""Random modules for comparisons of propagation: a chain of operations over a random mesh, with random shardings.

All choices come from one `random.Random`, so a seed identifies a module.
"""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from cxx_versions import has_another_rule, lacks

MESHES = (
    (("x", 2), ("y", 2)),
    (("x", 4), ("y", 2)),
    (("x", 2), ("y", 3), ("z", 2)),
    (("x", 8), ("y", 4)),
    (("x", 6), ("y", 4)),
    (("x", 2), ("y", 2), ("z", 2), ("w", 2)),
)
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
UNARY = ("negate", "exponential", "tanh", "abs")
BINARY = ("add", "multiply", "maximum", "subtract")


@dataclass
class Value:
    """A tensor of the module."""

    name: str
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}f32>"


@dataclass
class Maker:
    """Generator of one module; with `priorities`, dimensions may have one."""

    choose: random.Random
    num_operations: int
    priorities: bool = False
    values: list[Value] = field(default_factory=list[Value])
    lines: list[str] = field(default_factory=list[str])
    grouped: set[str] = field(default_factory=set[str])
    mesh: tuple[tuple[str, int], ...] = ()
    density: float = 0.0
    """Probability that an operation has a sharding."""

    def module(self) -> str:
        """Return the text of the module."""
        choose = self.choose
        self.mesh = choose.choice(MESHES)
        self.density = choose.choice((0.05, 0.15, 0.5))
        arguments = [Value(f"%arg{i}", self.shape()) for i in range(choose.randint(1, 4))]
        self.values = list(arguments)
        while len(self.lines) < self.num_operations:
            choose.choice(self.operations())()
        signature = ", ".join(f"{value.name}: {value.type}{self.argument_sharding(value)}" for value in arguments)
        returned = choose.sample(self.values, min(len(self.values), choose.randint(1, 3)))
        if choose.random() < 0.8:  # keep operations from being dead
            returned += [value for value in self.values[len(arguments) :] if not self.is_used(value)]
            returned = list({value.name: value for value in returned}.values())
        results = ", ".join(f"{value.type}{self.argument_sharding(value)}" for value in returned)
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh)
        body = "\n".join(f"    {line}" for line in self.lines)
        names = ", ".join(value.name for value in returned)
        types = ", ".join(value.type for value in returned)
        return (
            f"sdy.mesh @mesh = <[{axes}]>\n"
            f"func.func @main({signature}) -> ({results}) {{\n{body}\n    return {names} : {types}\n}}\n"
        )

    def is_used(self, value: Value) -> bool:
        return any(re.search(rf"{value.name}\b(?! =)", line) for line in self.lines)

    def operations(self) -> list[Callable[[], None]]:
        return [
            self.unary,
            self.binary,
            self.binary,
            self.dot,
            self.dot,
            self.transpose,
            *([] if has_another_rule("stablehlo.reshape") else [self.reshape]),
            self.broadcast,
            self.reduce,
            self.constraint,
            self.concatenate,
            self.slice,
            self.propagation_barrier,
            self.optimization_barrier,
            self.loop,
            self.group,
        ]

    def shape(self) -> tuple[int, ...]:
        return tuple(self.choose.choice(SIZES) for _ in range(self.choose.randint(0, 3)))

    def pick(self) -> Value:
        return self.choose.choice(self.values[-4:] if self.choose.random() < 0.7 else self.values)

    def emit(self, shape: tuple[int, ...], text: str, sharded: bool = True) -> Value:
        """Append the operation `text`, in which `{type}` is the type of the result, possibly with a sharding."""
        value = Value(f"%{len(self.lines)}", tuple(shape))
        attribute = ""
        if sharded and self.choose.random() < self.density:
            attribute = f" {{sdy.sharding = #sdy.sharding_per_value<[{self.sharding(value)}]>}}"
        text = text.replace("{type}", value.type).replace("{attribute}", attribute)
        self.lines.append(f"{value.name} = {text}")
        self.values.append(value)
        return value

    def unary(self) -> None:
        operand = self.pick()
        self.emit(operand.shape, f"stablehlo.{self.choose.choice(UNARY)} {operand.name}{{attribute}} : {{type}}")

    def like(self, value: Value) -> Value:
        """Return a value with the same shape as `value`."""
        return self.choose.choice([other for other in self.values if other.shape == value.shape])

    def binary(self) -> None:
        lhs = self.pick()
        rhs = self.like(lhs)
        name = self.choose.choice(BINARY)
        self.emit(lhs.shape, f"stablehlo.{name} {lhs.name}, {rhs.name}{{attribute}} : {{type}}")

    def dot(self) -> None:
        pairs = [
            (lhs, rhs, i, j)
            for lhs in self.values[-6:]
            for rhs in self.values
            for i, size in enumerate(lhs.shape)
            for j, other in enumerate(rhs.shape)
            if size == other and len(lhs.shape) + len(rhs.shape) <= 5
        ]
        if not pairs:
            return
        lhs, rhs, i, j = self.choose.choice(pairs)
        shape = lhs.shape[:i] + lhs.shape[i + 1 :] + rhs.shape[:j] + rhs.shape[j + 1 :]
        types = f"({lhs.type}, {rhs.type}) -> {{type}}"
        self.emit(
            shape,
            f"stablehlo.dot_general {lhs.name}, {rhs.name}, contracting_dims = [{i}] x [{j}]{{attribute}} : {types}",
        )

    def transpose(self) -> None:
        operand = self.pick()
        order = list(range(len(operand.shape)))
        self.choose.shuffle(order)
        shape = tuple(operand.shape[dim] for dim in order)
        self.emit(
            shape,
            f"stablehlo.transpose {operand.name}, dims = {order}{{attribute}} : ({operand.type}) -> {{type}}",
        )

    def reshape(self) -> None:
        operand = self.pick()
        shape = self.refactor(math.prod(operand.shape))
        self.emit(shape, f"stablehlo.reshape {operand.name}{{attribute}} : ({operand.type}) -> {{type}}")

    def refactor(self, size: int) -> tuple[int, ...]:
        """Return dimensions whose product is `size`."""
        dims: list[int] = []
        for _ in range(self.choose.randint(0, 2)):
            divisor = self.choose.choice([d for d in range(1, min(size, 48) + 1) if size % d == 0])
            dims.append(divisor)
            size //= divisor
        return (*dims, size)

    def broadcast(self) -> None:
        operand = self.pick()
        if len(operand.shape) > 2:
            return
        dims = sorted(self.choose.sample(range(3), len(operand.shape)))
        shape = [self.choose.choice(SIZES) for _ in range(3)]
        for dim, size in zip(dims, operand.shape, strict=True):
            if size != 1 or self.choose.random() < 0.5:
                shape[dim] = size
        types = f"({operand.type}) -> {{type}}"
        self.emit(tuple(shape), f"stablehlo.broadcast_in_dim {operand.name}, dims = {dims}{{attribute}} : {types}")

    def reduce(self) -> None:
        operand = self.pick()
        if not operand.shape:
            return
        count = self.choose.randint(1, len(operand.shape))
        dims = sorted(self.choose.sample(range(len(operand.shape)), count))
        shape = tuple(size for dim, size in enumerate(operand.shape) if dim not in dims)
        zero = self.emit((), "stablehlo.constant dense<0.0> : {type}", sharded=False)
        self.emit(
            shape,
            f"stablehlo.reduce({operand.name} init: {zero.name} ) applies stablehlo.add across dimensions = {dims}"
            f"{{attribute}} : ({operand.type}, {zero.type}) -> {{type}}",
        )

    def concatenate(self) -> None:
        lhs = self.pick()
        if not lhs.shape:
            return
        rhs = self.like(lhs)
        dim = self.choose.randrange(len(lhs.shape))
        shape = tuple(2 * size if i == dim else size for i, size in enumerate(lhs.shape))
        types = f"({lhs.type}, {rhs.type}) -> {{type}}"
        self.emit(shape, f"stablehlo.concatenate {lhs.name}, {rhs.name}, dim = {dim}{{attribute}} : {types}")

    def slice(self) -> None:
        operand = self.pick()
        if not operand.shape:
            return
        shape = tuple(size if self.choose.random() < 0.6 else max(1, size // 2) for size in operand.shape)
        ranges = ", ".join(f"0:{size}" for size in shape)
        self.emit(shape, f"stablehlo.slice {operand.name} [{ranges}]{{attribute}} : ({operand.type}) -> {{type}}")

    def propagation_barrier(self) -> None:
        operand = self.pick()
        direction = self.choose.choice(("NONE", "FORWARD", "BACKWARD"))
        text = f"sdy.propagation_barrier {operand.name} allowed_direction={direction}{{attribute}} : {{type}}"
        self.emit(operand.shape, text)

    def optimization_barrier(self) -> None:
        operand = self.pick()
        barrier = self.emit(operand.shape, f"stablehlo.optimization_barrier {operand.name} : {{type}}", sharded=False)
        self.edge(barrier)

    def edge(self, owner: Value) -> None:
        """Return the data-flow edge of `owner`, which then has no other user."""
        sharding = f" sharding={self.sharding(owner)}" if self.choose.random() < self.density else ""
        self.values.remove(owner)
        self.emit(owner.shape, f"sdy.data_flow_edge {owner.name}{sharding} : {{type}}", sharded=False)

    def loop(self) -> None:
        """Append a loop whose body combines its carried values with captured ones."""
        initial = self.pick()
        outside = self.like(initial)
        size = len(self.lines)
        body = f"%b{size} = stablehlo.{self.choose.choice(BINARY)} %v{size}, {outside.name} : {initial.type}"
        loop = self.emit(
            initial.shape,
            f"stablehlo.while(%v{size} = {initial.name}) : {initial.type}\n"
            f"cond {{ %t{size} = stablehlo.constant dense<true> : tensor<i1>\n"
            f"stablehlo.return %t{size} : tensor<i1> }}\n"
            f"do {{ {body}\nstablehlo.return %b{size} : {initial.type} }}",
            sharded=False,
        )
        self.edge(loop)

    def group(self) -> None:
        """Append a new sharding group of two values that are in no group yet."""
        free = [value for value in self.values if value.name not in self.grouped]
        pairs = [(a, b) for a in free for b in free if a is not b and a.shape == b.shape]
        if not pairs:
            return
        members = self.choose.choice(pairs)
        group = len(self.grouped) // 2
        self.grouped |= {value.name for value in members}
        lines = [f"sdy.sharding_group {value.name} group_id={group} : {value.type}" for value in members]
        self.lines.append("\n".join(lines))

    def constraint(self) -> None:
        operand = self.pick()
        self.emit(
            operand.shape, f"sdy.sharding_constraint {operand.name} {self.sharding(operand)} : {{type}}", sharded=False
        )

    def argument_sharding(self, value: Value) -> str:
        if self.choose.random() < 0.4:
            return ""
        return f" {{sdy.sharding = #sdy.sharding{self.sharding(value)}}}"

    def sharding(self, value: Value) -> str:
        """Return a valid sharding of `value`: each axis, or one half of it, is used at most once."""
        available = [part for name, size in self.mesh for part in self.parts(name, size)]
        self.choose.shuffle(available)
        dims: list[str] = []
        for size in value.shape:
            axes: list[str] = []
            while available and self.choose.random() < 0.35 and size > 1:
                axes.append(available.pop())
            if self.choose.random() < 0.5:
                axes.append("?")
            priority = ""
            if self.priorities and (not axes or axes[-1] != "?" or len(axes) > 1) and axes:
                priority = self.choose.choice(["", "", "p0", "p1", "p2"])
            dims.append(f"{{{', '.join(axes)}}}{priority}")
        replicated = ""
        if available and self.choose.random() < 0.1:
            replicated = f", replicated={{{available.pop()}}}"
        elif lacks("shardings that tell nothing") and set(dims) == {"{?}"}:
            dims[0] = "{}"
        return f"<@mesh, [{', '.join(dims)}]{replicated}>"

    def parts(self, name: str, size: int) -> list[str]:
        """Return the full axis or one half of it. Two halves of one axis could become adjacent, which is invalid."""
        if size > 2 and size % 2 == 0 and self.choose.random() < 0.2:
            half = size // 2
            return [self.choose.choice([f'"{name}":(1){half}', f'"{name}":({half})2', f'"{name}":(1)2'])]
        return [f'"{name}"']


def random_module(seed: int, num_operations: int = 12, priorities: bool = False) -> str:
    """Return the module of `seed`: `num_operations` live operations or a few more."""
    return Maker(random.Random(seed), num_operations, priorities).module()
