"""A complete program, driven by choices."""

from dataclasses import dataclass

from sdy.mesh import Mesh
from small_scope.choices import Choices
from whole_programs.arrays import Array
from whole_programs.block import Block, Module, types
from whole_programs.contractions import CONTRACTIONS
from whole_programs.control_flow import families, grow
from whole_programs.conversions import CONVERSIONS
from whole_programs.elementwise import ELEMENTWISE
from whole_programs.indexing import INDEXING
from whole_programs.operands import new, some_shape
from whole_programs.reductions import REDUCTIONS
from whole_programs.shaping import SHAPING
from whole_programs.slicing import SLICING
from whole_programs.values import ELEMENTS, Value
from whole_programs.windows import WINDOWS

MESHES = (
    Mesh.of({"x": 2}),
    Mesh.of({"x": 3}),
    Mesh.of({"x": 5}),
    Mesh.of({"x": 6}),
    Mesh.of({"x": 8}),
    Mesh.of({"x": 2, "y": 3}),
    Mesh.of({"x": 2, "y": 4}),
    Mesh.of({"x": 4, "y": 2}),
    Mesh.of({"x": 2, "y": 2, "z": 2}),
    Mesh.of({"x": 5}, (3, 1, 4, 0, 2)),
    Mesh.of({"x": 2, "y": 3}, (5, 0, 3, 1, 4, 2)),
    Mesh.of({"x": 4, "y": 2}, (7, 6, 5, 4, 3, 2, 1, 0)),
)

_PLAIN = [
    *ELEMENTWISE, *CONVERSIONS, *SHAPING, *SLICING, *INDEXING, *REDUCTIONS, *WINDOWS, *CONTRACTIONS,
]  # fmt: skip
FAMILIES = [*_PLAIN, *families(_PLAIN)]

MOST_OPERATIONS = 12
MOST_RESULTS = 6


@dataclass(frozen=True)
class WholeProgram:
    """Text of a module, the arrays to run it with, and the rounding error allowed in each result."""

    text: str
    inputs: tuple[Array, ...]
    errors: tuple[float, ...]


def whole_program(choices: Choices, seed: int) -> WholeProgram:
    """Return a program of up to 12 top-level operations, whose random arrays use `seed`."""
    module = Module(choices, choices.of(MESHES), seed)
    main = Block(module, [])
    new(main, some_shape(main, 1), choices.of(ELEMENTS))
    for _ in range(MOST_OPERATIONS):
        if choices.below(20):
            grow(main, FAMILIES)
    unused = [each for each in main.values if each.name not in module.used]
    results = [each for each in unused[-MOST_RESULTS:] if choices.below(8)] or main.values[-1:]
    return WholeProgram(_text(main, results), tuple(module.inputs), tuple(each.numbers.error for each in results))


def _text(main: Block, results: list[Value]) -> str:
    module = main.module
    axes = ", ".join(f'"{name}"={size}' for name, size in module.mesh.axes)
    order = f", device_ids=[{', '.join(map(str, module.mesh.device_ids))}]" if module.mesh.device_ids else ""
    layouts = [
        f" {{sdy.sharding = #sdy.sharding{module.layout(each.rank)}}}" if module.choices.below(2) else ""
        for each in results
    ]
    kinds = ", ".join(f"{each.type}{layout}" for each, layout in zip(results, layouts, strict=True))
    lines = [*main.lines, f"return {', '.join(each.name for each in results)} : {types(results)}"]
    body = "\n".join(f"  {line}" for line in "\n".join(lines).split("\n"))
    head = f"func.func @main({', '.join(module.arguments)}) -> ({kinds}) {{"
    return "\n".join([f"sdy.mesh @mesh = <[{axes}]{order}>", head, body, "}", *module.functions])
