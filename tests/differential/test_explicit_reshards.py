"""Explicit reshards and the passes after them, compared with the C++ passes on programs with conflicting shardings."""

import random
from pathlib import Path

import pytest
from xdsl.passes import ModulePass

from cxx_versions import with_known_reductions
from oracle import assert_same, oracle
from sdy.passes.common.canonicalize import CanonicalizePass
from sdy.passes.exporting.insert_explicit_reshards import InsertExplicitReshardsPass
from sdy.passes.exporting.reshard_to_collectives import ReshardToCollectivesPass
from sdy.text import context, format, parse

FULL = (InsertExplicitReshardsPass(True), "func.func(sdy-insert-explicit-reshards{enable-full-version=true})")
MINIMAL = (InsertExplicitReshardsPass(False), "func.func(sdy-insert-explicit-reshards)")
STEPS: list[tuple[ModulePass, str]] = [
    FULL,
    (CanonicalizePass(("sdy-reshard",)), "canonicalize{enable-patterns=sdy-reshard}"),
    (ReshardToCollectivesPass(), "func.func(sdy-reshard-to-collectives)"),
    (CanonicalizePass(("sdy-collective",)), "canonicalize{enable-patterns=sdy-collective}"),
]


def after(text: str, step: ModulePass) -> str:
    """Return `text` after `step`, parsed by jaxlib's C++."""
    module = parse(text)
    step.apply(context(), module)
    return with_known_reductions(format(module))


def test_the_transformer_gets_the_collectives_of_shardy():
    example = Path(__file__).parents[2] / "examples" / "transformer.mlir"
    text = oracle(example.read_text(), "sdy-propagation-pipeline")
    assert_same(after(text, MINIMAL[0]), oracle(text, MINIMAL[1]))
    for step, name in STEPS:
        theirs = oracle(text, name)
        assert_same(after(text, step), theirs)
        text = theirs


OPERATIONS: dict[str, tuple[list[tuple[int, ...]], tuple[int, ...], str]] = {
    "matmul": ([(8, 32), (32, 16)], (8, 16), "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"),
    "small_matmul": ([(4, 32), (32, 8)], (4, 8), "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"),
    "attention": (
        [(4, 8, 16), (4, 32, 16)],
        (4, 8, 32),
        "stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2]",
    ),
    "add": ([(8, 16), (8, 16)], (8, 16), "stablehlo.add %a, %b"),
    "clamp": ([(8, 16), (8, 16), (8, 16)], (8, 16), "stablehlo.clamp %a, %b, %c"),
    "negate": ([(8, 16, 8)], (8, 16, 8), "stablehlo.negate %a"),
    "transpose": ([(8, 16, 4)], (4, 8, 16), "stablehlo.transpose %a, dims = [2, 0, 1]"),
    "reduce": (
        [(8, 16, 4), ()],
        (16,),
        "stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [0, 2]",
    ),
    "split": ([(32, 8)], (4, 8, 8), "stablehlo.reshape %a"),
    "merge": ([(4, 8, 8)], (32, 8), "stablehlo.reshape %a"),
    "broadcast": ([(8, 16)], (8, 4, 16), "stablehlo.broadcast_in_dim %a, dims = [0, 2]"),
    "concatenate": ([(8, 4), (8, 12)], (8, 16), "stablehlo.concatenate %a, %b, dim = 1"),
    "slice": ([(8, 16)], (8, 8), "stablehlo.slice %a [0:8, 0:8]"),
    "pad": ([(8, 16), ()], (8, 20), "stablehlo.pad %a, %b, low = [0, 2], high = [0, 2], interior = [0, 0]"),
    "reverse": ([(8, 16)], (8, 16), "stablehlo.reverse %a, dims = [1]"),
}
"""The operand shapes, the result shape, and the operation."""

POOLS = {
    '["x"=2, "y"=2, "z"=2]': ['"x"', '"y"', '"z"'],
    '["x"=4, "y"=2]': ['"x":(1)2', '"x":(2)2', '"y"'],
}
"""Meshes, and the axes to shard dimensions along."""


def tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"


def sharding(draw: random.Random, rank: int, pool: list[str]) -> str:
    """Draw axes of `pool` for some dimensions, without adjacent sub-axes that could be merged."""
    dims: list[list[str]] = [[] for _ in range(rank)]
    for axis in draw.sample(pool, draw.randint(0, len(pool)) if rank else 0):
        dim = draw.choice(dims)
        if not (dim and dim[-1] == '"x":(1)2' and axis == '"x":(2)2'):
            dim.append(axis)
    return f"<@mesh, [{', '.join('{' + ', '.join(axes) + '}' for axes in dims)}]>"


def random_function(draw: random.Random, index: int, pool: list[str]) -> str:
    name, (operands, result, operation) = draw.choice(list(OPERATIONS.items()))

    def sometimes(attribute: str) -> str:
        return f"{{sdy.sharding = #sdy.{attribute}}}" if draw.random() < 0.85 else ""

    arguments = ", ".join(
        f"%{letter}: {tensor(shape)} {sometimes(f'sharding{sharding(draw, len(shape), pool)}')}"
        for letter, shape in zip("abc", operands, strict=False)
    )
    wanted = sometimes(f"sharding{sharding(draw, len(result), pool)}")
    computed = sometimes(f"sharding_per_value<[{sharding(draw, len(result), pool)}]>")
    one_type = operation.split()[0] in ("stablehlo.add", "stablehlo.clamp", "stablehlo.negate", "stablehlo.reverse")
    types = tensor(result) if one_type else f"({', '.join(map(tensor, operands))}) -> {tensor(result)}"
    return f"""func.func @{name}_{index}({arguments}) -> ({tensor(result)} {wanted}) {{
      %r = {operation} {computed} : {types}
      return %r : {tensor(result)}
    }}"""


@pytest.mark.parametrize("mesh", POOLS)
@pytest.mark.parametrize(("step", "name"), [FULL, MINIMAL], ids=["full", "minimal"])
def test_disagreeing_shardings_are_resharded_as_by_shardy(mesh: str, step: ModulePass, name: str):
    draw = random.Random(mesh)
    functions = [random_function(draw, index, POOLS[mesh]) for index in range(150)]
    text = "\n".join([f"sdy.mesh @mesh = <{mesh}>", *functions])
    assert_same(after(text, step), oracle(text, name))
