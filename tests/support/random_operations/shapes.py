"""Operations that move elements."""

from math import prod
from random import Random

from random_operations.text import Shape, array, family, function, random_shape, shrunk, some, tensor


@family
def broadcast_in_dim(rng: Random) -> str:
    operand, dims, result = broadcast_sizes(rng)
    return function(
        "stablehlo.broadcast_in_dim", [tensor(operand)], [tensor(result)], f"broadcast_dimensions = {array(dims)}"
    )


def broadcast_sizes(rng: Random) -> tuple[list[int], list[int], list[int]]:
    """Return an operand shape, the result dimensions that it maps to, and the result shape."""
    result = random_shape(rng, 0, 5)
    dims = some(rng, range(len(result)))
    return [rng.choice([1, result[dim], result[dim]]) for dim in dims], dims, result


@family
def transpose(rng: Random) -> str:
    shape = random_shape(rng, 0, 5)
    permutation = rng.sample(range(len(shape)), len(shape))
    result = [shape[dim] for dim in permutation]
    return function("stablehlo.transpose", [tensor(shape)], [tensor(result)], f"permutation = {array(permutation)}")


@family
def reverse(rng: Random) -> str:
    shape = random_shape(rng)
    dims = some(rng, range(len(shape)))
    return function("stablehlo.reverse", [tensor(shape)], [tensor(shape)], f"dimensions = {array(dims)}")


@family
def reshape(rng: Random) -> str:
    """Reshape between two groupings of the same prime factors, often in the same order, with interspersed ones."""
    primes = [rng.choice([2, 2, 2, 3, 3, 5, 7]) for _ in range(rng.randint(0, 7))]
    if rng.random() < 0.05:
        primes.append(0)

    def group() -> list[int]:
        order = rng.sample(primes, len(primes)) if rng.random() < 0.4 else primes
        shape: list[int] = []
        while order:
            count = rng.randint(1, 3)
            shape.append(prod(order[:count]))
            order = order[count:]
        for _ in range(rng.randint(0, 2)):
            shape.insert(rng.randint(0, len(shape)), 1)
        return shape

    return function("stablehlo.reshape", [tensor(group())], [tensor(group())])


@family
def slice_(rng: Random) -> str:
    shape = random_shape(rng)
    result = shrunk(rng, shape)
    properties = f"start_indices = {array([0] * len(shape))}, limit_indices = {array(result)}"
    return function(
        "stablehlo.slice", [tensor(shape)], [tensor(result)], f"{properties}, strides = {array([1] * len(shape))}"
    )


@family
def pad(rng: Random) -> str:
    shape = random_shape(rng)
    (low, high, interior), result = padded(rng, shape)
    properties = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}"
    return function(
        "stablehlo.pad",
        [tensor(shape), tensor([])],
        [tensor(result)],
        f"{properties}, interior_padding = {array(interior)}",
    )


def padded(rng: Random, shape: Shape) -> tuple[list[list[int]], list[int]]:
    """Return the low, high and interior padding of each dimension, and the padded shape."""
    low, high = ([rng.choice([0, 0, 1, 3]) for _ in shape] for _ in range(2))
    return [low, high, [0] * len(shape)], [sum(sizes) for sizes in zip(shape, low, high, strict=True)]


@family
def dynamic_slice(rng: Random) -> str:
    shape = random_shape(rng)
    sizes = shrunk(rng, shape)
    operands = [tensor(shape)] + [tensor([], "i32")] * len(shape)
    return function("stablehlo.dynamic_slice", operands, [tensor(sizes)], f"slice_sizes = {array(sizes)}")


@family
def dynamic_update_slice(rng: Random) -> str:
    shape = random_shape(rng, 1)
    indices = [tensor([], "i32")] * len(shape)
    constants = "\n  ".join(
        f"%v{index + 2} = stablehlo.constant dense<0> : tensor<i32>"
        for index in range(len(shape) if rng.random() < 0.5 else rng.randrange(len(shape)))
    )
    return function(
        "stablehlo.dynamic_update_slice",
        [tensor(shape), tensor(shrunk(rng, shape)), *indices],
        [tensor(shape)],
        before=constants,
    )


@family
def concatenate(rng: Random) -> str:
    """Concatenate arguments and slices of them, of one tensor or of several."""
    shape = random_shape(rng, 1, 3)
    dim, count, same = rng.randrange(len(shape)), rng.randint(1, 3), rng.random() < 0.5
    ratio = rng.choice([0.0, 0.5, 1.0])
    sizes: list[list[int]] = []
    lines: list[str] = []
    for index in range(count):
        source = f"%{0 if same else index}"
        size = list(shape)
        if rng.random() < ratio:
            size[dim] = rng.randint(0, shape[dim])
            ranges = ", ".join(f"0:{limit}" for limit in size)
            lines.append(f"%v{index} = stablehlo.slice {source} [{ranges}] : ({tensor(shape)}) -> {tensor(size)}")
        sizes.append(size)
    result = list(shape)
    result[dim] = sum(size[dim] for size in sizes)
    values = ", ".join(
        f"%v{index}" if any(line.startswith(f"%v{index} ") for line in lines) else f"%{0 if same else index}"
        for index in range(count)
    )
    arguments = ", ".join(f"%{index}: {tensor(shape)}" for index in range(count))
    types = ", ".join(map(tensor, sizes))
    newline = "\n  "
    return f"""
func.func @NAME({arguments}) {{
  {newline.join(lines)}
  %r = "stablehlo.concatenate"({values}) <{{dimension = {dim} : i64}}> : ({types}) -> {tensor(result)}
  return
}}"""
