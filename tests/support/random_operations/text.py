"""The registry of families, random shapes, and the text of a function around one operation."""

from collections.abc import Callable, Iterable, Sequence
from random import Random

Shape = Sequence[int]
Family = Callable[[Random], str]

SIZES = (0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16)
FAMILIES: dict[str, Family] = {}


def family(function: Family) -> Family:
    """Register `function` as a family."""
    FAMILIES[function.__name__] = function
    return function


def tensor(shape: Shape, element: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), element])}>"


def function(
    name: str, operands: Sequence[str], results: Sequence[str], properties: str = "", region: str = "", before: str = ""
) -> str:
    """Return a function around one operation in generic form, with arguments `%0`, `%1`, ... as its operands.

    `before` is text in front of the operation; if it defines `%vN`, that value replaces operand `%N`.
    """
    arguments = ", ".join(f"%{index}: {type_}" for index, type_ in enumerate(operands))
    values = ", ".join(f"%v{index}" if f"%v{index} =" in before else f"%{index}" for index in range(len(operands)))
    properties = f" <{{{properties}}}>" if properties else ""
    region = f" ({region})" if region else ""
    return f"""
func.func @NAME({arguments}) {{
  {before}
  %r:{len(results)} = "{name}"({values}){properties}{region} : ({", ".join(operands)}) -> ({", ".join(results)})
  return
}}"""


def array(values: Iterable[object], kind: str = "i64") -> str:
    text = ", ".join(map(str, values))
    return f"array<{kind}: {text}>" if text else f"array<{kind}>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    if not values:
        return "dense<> : tensor<0x2xi64>"
    return f"dense<{[list(pair) for pair in values]}> : tensor<{len(values)}x2xi64>"


def random_shape(rng: Random, low: int = 0, high: int = 4) -> list[int]:
    return [rng.choice(SIZES) for _ in range(rng.randint(low, high))]


def some(rng: Random, items: Iterable[int]) -> list[int]:
    """Return a random subset in random order."""
    items = list(items)
    return rng.sample(items, rng.randint(0, len(items)))


def body(operation: str, element: str = "f32", pairs_of_arguments: int = 1) -> str:
    """Return a region that combines argument `i` with argument `i + pairs_of_arguments`."""
    type_ = tensor([], element)
    arguments = ", ".join(f"%a{index}: {type_}" for index in range(2 * pairs_of_arguments))
    lines = "".join(
        f'%b{i} = "stablehlo.{operation}"(%a{i}, %a{i + pairs_of_arguments}) : ({type_}, {type_}) -> {type_}\n'
        for i in range(pairs_of_arguments)
    )
    values = ", ".join(f"%b{i}" for i in range(pairs_of_arguments))
    types = ", ".join([type_] * pairs_of_arguments)
    return f'{{\n^bb0({arguments}):\n{lines}"stablehlo.return"({values}) : ({types}) -> ()\n}}'


def shrunk(rng: Random, shape: Shape) -> list[int]:
    return [rng.choice([size, size, rng.randint(0, size), min(size, 1)]) for size in shape]
