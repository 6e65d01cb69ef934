"""Small functions around a constant: every way to create a value, to compute from it, and to use the result.

A function creates one value, applies up to two steps to it, and uses the value of each step a given number of times.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((), (1,), (1, 1), (4,), (2, 2))
"""Shapes of one element at several ranks, and of several elements."""


def type_of(shape: Shape, element: str = "i32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def name_of(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "scalar"


SOURCES: dict[str, Callable[[Shape], str | None]] = {
    "constant": lambda s: f"stablehlo.constant dense<1> : {type_of(s)}",
    "constant of sdy": lambda s: f"sdy.constant dense<1> : {type_of(s)}",
    "iota": lambda s: f"stablehlo.iota dim = 0 : {type_of(s)}" if s else None,
    "expanded argument": lambda s: f"stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<i32>) -> {type_of(s)}",
    "expanded constant": lambda s: f"stablehlo.broadcast_in_dim %one, dims = [] : (tensor<i32>) -> {type_of(s)}",
    "no constant": lambda s: f"stablehlo.custom_call @source() : () -> {type_of(s)}",
}
"""The operation that creates a value of a shape, or None; `%scalar` is an argument and `%one` a constant."""


@dataclass(frozen=True)
class Step:
    """An operation on `{v}` of type `{t}`; `to` is the shape of its result, by default the operand's."""

    text: str
    to: Shape | None = None
    takes: Callable[[Shape], bool] = lambda _: True


def _to_each_shape(text: str, takes: Callable[[Shape, Shape], bool]) -> dict[str, Step]:
    operation = text.split()[0].removeprefix("stablehlo.")
    return {f"{operation} {name_of(to)}": Step(text, to, lambda shape, to=to: takes(shape, to)) for to in SHAPES}


def _can_broadcast(shape: Shape, to: Shape) -> bool:
    added = len(to) - len(shape)
    return added >= 0 and all(size in (1, new) for size, new in zip(shape, to[added:], strict=True))


def _has_dimensions(shape: Shape) -> bool:
    return bool(shape)


def _is_one_element(shape: Shape) -> bool:
    return math.prod(shape) == 1


_CALLED = {
    "keeps": ("stablehlo.negate %p : {t}", None),
    "varies": ("stablehlo.custom_call @copy(%p) : ({t}) -> {t}", None),
    "scalar": ("stablehlo.reshape %p : ({t}) -> tensor<i32>", ()),
}
"""Bodies of functions and named computations with argument `%p`, and the shapes of their results."""

STEPS: dict[str, Step] = {
    **_to_each_shape("stablehlo.reshape {v} : ({t}) -> {to}", lambda shape, to: math.prod(shape) == math.prod(to)),
    **_to_each_shape("stablehlo.broadcast_in_dim {v}, dims = {dims} : ({t}) -> {to}", _can_broadcast),
    "slice": Step("stablehlo.slice {v} [{slices}] : ({t}) -> {t}"),
    "negate": Step("stablehlo.negate {v} : {t}"),
    "add of itself": Step("stablehlo.add {v}, {v} : {t}"),
    "convert": Step("stablehlo.convert {v} : {t}"),
    "bitcast": Step("stablehlo.bitcast_convert {v} : ({t}) -> {t}"),
    "clamp by constants": Step("stablehlo.clamp %one, {v}, %one : (tensor<i32>, {t}, tensor<i32>) -> {t}"),
    "clamp by an argument": Step("stablehlo.clamp %scalar, {v}, %one : (tensor<i32>, {t}, tensor<i32>) -> {t}"),
    "select by an argument": Step("stablehlo.select %flag, {v}, {v} : (tensor<i1>, {t}, {t}) -> {t}"),
    "transpose": Step("stablehlo.transpose {v}, dims = [{order}] : ({t}) -> {t}"),
    "reverse": Step("stablehlo.reverse {v}, dims = [0] : {t}", None, _has_dimensions),
    "concatenate": Step("stablehlo.concatenate {v}, dim = 0 : ({t}) -> {t}", None, _has_dimensions),
    "reduce": Step(
        "stablehlo.reduce({v} init: %one) applies stablehlo.add across dimensions = [{order}]"
        " : ({t}, tensor<i32>) -> tensor<i32>",
        (),
        _has_dimensions,
    ),
    "size": Step("stablehlo.get_dimension_size {v}, dim = 0 : ({t}) -> tensor<i32>", (), _has_dimensions),
    "barrier": Step("stablehlo.optimization_barrier {v} : {t}"),
    "propagation barrier": Step("sdy.propagation_barrier {v} allowed_direction=NONE : {t}"),
    "constraint": Step("sdy.sharding_constraint {v} <@mesh, [{open}]> : {t}"),
    "custom call": Step("stablehlo.custom_call @copy({v}) : ({t}) -> {t}"),
    "of no dialect": Step('"my.op"({v}) : ({t}) -> {t}'),
    "branches": Step(
        '"stablehlo.if"(%flag) ({{\n stablehlo.return {v} : {t}\n }}, {{\n'
        " %branch = stablehlo.negate {v} : {t}\n stablehlo.return %branch : {t}\n }}) : (tensor<i1>) -> {t}"
    ),
    "map": Step(
        '"stablehlo.map"({v}) <{{dimensions = array<i64{colon}{order}>}}> ({{\n ^bb0(%e: tensor<i32>):\n'
        " %mapped = stablehlo.negate %e : tensor<i32>\n stablehlo.return %mapped : tensor<i32>\n }}) : ({t}) -> {t}"
    ),
    **{
        f"call of what {what}": Step(f"call @{what}_{{name}}({{v}}) : ({{t}}) -> {{to}}", to, _is_one_element)
        for what, (_, to) in _CALLED.items()
    },
    **{
        f"named computation of what {what}": Step(
            f'sdy.named_computation<"{what}_{{name}}">({{v}}) (%p: {{t}}) {{{{\n'
            f" %q = {does}\n sdy.return %q : {{to}}\n }}}} : ({{t}}) -> {{to}}",
            to,
            _is_one_element,
        )
        for what, (does, to) in _CALLED.items()
    },
}


@dataclass(frozen=True)
class Uses:
    """Number of uses of each step's value, their position, and the step whose value joins a sharding group."""

    counts: tuple[int, int, int]
    at_end: bool = False
    twice_in_one: bool = False
    grouped: int | None = None


USES = (
    Uses((2, 2, 2)),
    Uses((1, 1, 1), at_end=True),
    Uses((0, 2, 2), grouped=0),
    Uses((1, 0, 2), at_end=True, grouped=1),
    Uses((1, 1, 0), twice_in_one=True),
)


def function(name: str, source: str, shape: Shape, steps: Sequence[str], uses: Uses) -> str | None:
    """Return the text of one function, or None if the value does not exist or a step does not take its shape."""
    made = SOURCES[source](shape)
    if made is None:
        return None
    lines, last = [f"%v0 = {made}"], list[str]()
    for index in range(len(steps) + 1):
        if index:
            step = STEPS[steps[index - 1]]
            if not step.takes(shape):
                return None
            to = shape if step.to is None else step.to
            lines.append(f"%v{index} = {_written(step, f'%v{index - 1}', shape, to)}")
            shape = to
        value, type_ = f"%v{index}", type_of(shape)
        times = 1 + uses.twice_in_one
        use = f"stablehlo.custom_call @use({', '.join([value] * times)}) {{{{has_side_effect = true}}}}"
        used = [f"{use} : ({', '.join([type_] * times)}) -> ()".format()] * uses.counts[index]
        if uses.grouped == index:
            used.append(f"sdy.sharding_group {value} group_id=0 : {type_}")
        (last if uses.at_end else lines).extend(used)
    one = "%one = stablehlo.constant dense<1> : tensor<i32>"
    body = "\n".join(f"  {line}" for line in (one, *lines, *last, "return"))
    return f"func.func @{name}(%scalar: tensor<i32>, %flag: tensor<i1>) {{\n{body}\n}}"


def _written(step: Step, value: str, shape: Shape, to: Shape) -> str:
    order = ", ".join(map(str, range(len(shape))))
    return step.text.format(
        v=value,
        t=type_of(shape),
        to=type_of(to),
        name=name_of(shape),
        order=order,
        colon=": " if shape else "",
        dims=list(range(len(to) - len(shape), len(to))),
        slices=", ".join(f"0:{size}" for size in shape),
        open=", ".join(["{}"] * len(shape)),
    )


def called_functions() -> Iterator[str]:
    """Yield the functions that the others call."""
    for what, (does, to) in _CALLED.items():
        for shape in filter(_is_one_element, SHAPES):
            type_, result = type_of(shape), type_of(shape if to is None else to)
            yield (
                f"func.func private @{what}_{name_of(shape)}(%p: {type_}) -> {result} {{\n"
                f"  %q = {does.format(t=type_)}\n  return %q : {result}\n}}"
            )


def cases(num_steps: int) -> list[tuple[str, Shape, tuple[str, ...], Uses]]:
    """Return all arguments of `function` with this number of steps; it returns None for some."""
    return list(product(SOURCES, SHAPES, product(STEPS, repeat=num_steps), USES))
