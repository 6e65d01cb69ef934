"""Operations with dynamic shapes: shape operands, some of them constants."""

from collections.abc import Sequence
from random import Random

from random_operations.shapes import broadcast_sizes, padded
from random_operations.text import Shape, array, family, function, random_shape, shrunk, tensor

INDICES = ("i32", "i64", "index", "ui32", "i8")


@family
def dynamic_iota(rng: Random) -> str:
    shape = random_shape(rng, 1)
    properties = f"iota_dimension = {rng.randrange(len(shape))} : i64"
    return _function(rng, "dynamic_iota", [], [shape], shape, properties)


@family
def dynamic_reshape(rng: Random) -> str:
    shape = random_shape(rng)
    result = rng.sample(shape, len(shape)) + [1] * rng.randint(0, 2)
    return _function(rng, "dynamic_reshape", [tensor(shape)], [result], result)


@family
def dynamic_broadcast_in_dim(rng: Random) -> str:
    operand, dims, result = broadcast_sizes(rng)
    hints = {
        "known_expanding_dimensions": [dim for dim, size in enumerate(operand) if size == 1 and rng.random() < 0.5],
        "known_nonexpanding_dimensions": [dim for dim, size in enumerate(operand) if size != 1 and rng.random() < 0.5],
    }
    written = {"broadcast_dimensions": dims, **{name: hint for name, hint in hints.items() if hint}}
    properties = ", ".join(f"{name} = {array(values)}" for name, values in written.items())
    return _function(rng, "dynamic_broadcast_in_dim", [tensor(operand)], [result], result, properties)


@family
def concatenate_arguments(rng: Random) -> str:
    shape = random_shape(rng, 1, 3)
    dim = rng.randrange(len(shape))
    shapes = [[*shape[:dim], rng.randint(0, 3), *shape[dim + 1 :]] for _ in range(rng.randint(1, 3))]
    result = [*shape[:dim], sum(sizes[dim] for sizes in shapes), *shape[dim + 1 :]]
    operands = [tensor(sizes) for sizes in shapes]
    return function("stablehlo.concatenate", operands, [tensor(result)], f"dimension = {dim} : i64")


@family
def real_dynamic_slice(rng: Random) -> str:
    shape = random_shape(rng)
    result = shrunk(rng, shape)
    columns = ([0] * len(shape), result, [1] * len(shape))
    return _function(rng, "real_dynamic_slice", [tensor(shape)], columns, result)


@family
def dynamic_pad(rng: Random) -> str:
    shape = random_shape(rng)
    columns, result = padded(rng, shape)
    return _function(rng, "dynamic_pad", [tensor(shape), tensor([])], columns, result)


@family
def get_dimension_size(rng: Random) -> str:
    shape = random_shape(rng, 1)
    properties = f"dimension = {rng.randrange(len(shape))} : i64"
    return function("stablehlo.get_dimension_size", [tensor(shape)], [tensor([], "i32")], properties)


@family
def set_dimension_size(rng: Random) -> str:
    shape = random_shape(rng, 1)
    dim = rng.randrange(len(shape))
    size = rng.choice([f"%v1 = stablehlo.constant dense<{rng.choice([shape[dim], 1])}> : tensor<i32>", ""])
    properties = f"dimension = {dim} : i64"
    operands = [tensor(shape), tensor([], "i32")]
    return function("stablehlo.set_dimension_size", operands, [tensor(shape)], properties, before=size)


def _function(
    rng: Random, name: str, operands: Sequence[str], columns: Sequence[Shape], result: Shape, properties: str = ""
) -> str:
    """Return a function around an operation whose last operands are 1D tensors of `columns`, constants or arguments."""
    index = rng.choice(INDICES)
    types = [tensor([len(column)], index) for column in columns]
    is_constant = rng.random() < 0.6
    dialect = "arith" if index == "index" else "stablehlo"
    constants = [
        f"%v{number} = {dialect}.constant dense<{list(column)}> : {type_}"
        for number, (column, type_) in enumerate(zip(columns, types, strict=True), len(operands))
        if is_constant and column and (min(column) >= 0 or not index.startswith("u"))
    ]
    before = "\n  ".join(constants)
    return function(f"stablehlo.{name}", [*operands, *types], [tensor(result)], properties, before=before)
