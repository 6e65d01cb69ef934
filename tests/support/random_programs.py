"""Random JAX programs on integers, whose results do not depend on the order of summation.

Each is a chain of operations of all families on tensors of odd sizes. Constraints between them shard any dimension over
any axes, evenly or not. All choices come from one `random.Random`.
"""

import random
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, GRID, LINE, Axes, Program, constrain, ints

SIZES = (1, 2, 3, 5, 7, 8, 13)
MESHES = (GRID, LINE, CUBE)


def random_program(choose: random.Random, num_operations: int) -> Program:
    """Return a function of two integer matrices with `num_operations` operations, over one of the meshes."""
    mesh = choose.choice(MESHES)
    sizes = [choose.choice(SIZES) for _ in range(3)]

    def function(*arguments: jax.Array) -> list[jax.Array]:
        values = list(arguments)
        for _ in range(num_operations):
            operand = choose.choice(values[-3:])
            value = choose.choice(OPERATIONS)(choose, operand, values)
            if value.size > 4000:
                value = value.reshape(-1)[:97]
            values.append(_split(choose, value, tuple(mesh)) if choose.random() < 0.6 else value)
        return values[-3:]

    return Program(function, (ints((sizes[0], sizes[1])), ints((sizes[1], sizes[2]))), mesh)


def _split(choose: random.Random, x: jax.Array, names: Sequence[str]) -> jax.Array:
    """Constrain `x` to some of the axes `names`, in any order, each in any dimension."""
    axes: list[Axes] = [None] * x.ndim
    taken = choose.sample(names, choose.randint(1, len(names)))
    while taken and x.ndim:
        count = choose.randint(1, len(taken))
        group, taken = tuple(taken[:count]), taken[count:]
        free = [dim for dim, axis in enumerate(axes) if axis is None]
        if free:
            axes[choose.choice(free)] = group
    return constrain(x, *axes)


Operation = Callable[[random.Random, jax.Array, Sequence[jax.Array]], jax.Array]


def _unary(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    functions: tuple[Callable[[jax.Array], jax.Array], ...] = (
        jnp.negative,
        jnp.abs,
        lambda x: 7 // (x | 1),
        lambda x: x.astype("float32").astype("int32"),
    )
    return choose.choice(functions)(x)


def _binary(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    like = choose.choice([value for value in values if value.shape == x.shape])
    functions: tuple[Callable[[jax.Array, jax.Array], jax.Array], ...] = (
        jnp.add,
        jnp.multiply,
        jnp.maximum,
        jnp.subtract,
        lambda x, y: jnp.where(jnp.greater(x, y), x, 3 * y),
    )
    return choose.choice(functions)(x, like)


def _dot(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    pairs = [
        (y, i, j)
        for y in values
        for i, size in enumerate(x.shape)
        for j, other in enumerate(y.shape)
        if size == other and x.ndim + y.ndim <= 5
    ]
    if not pairs:
        return x
    y, i, j = choose.choice(pairs)
    return jnp.tensordot(x, y, ((i,), (j,)))


def _transpose(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    return jnp.transpose(x, choose.sample(range(x.ndim), x.ndim))


def _reshape(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    size, shape = x.size, list[int]()
    for _ in range(choose.randint(0, 2)):
        shape.append(choose.choice([divisor for divisor in range(1, size + 1) if size % divisor == 0]))
        size //= shape[-1]
    return x.reshape(*shape, size)


def _broadcast(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if x.ndim > 2:
        return x
    dim = choose.randint(0, x.ndim)
    shape = list(x.shape)
    shape.insert(dim, choose.choice(SIZES))
    return jnp.broadcast_to(jnp.expand_dims(x, dim), shape)


def _reduce(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    dims = tuple(choose.sample(range(x.ndim), choose.randint(0, x.ndim)))
    reduce = choose.choice((jnp.sum, jnp.max, jnp.min, jnp.prod))
    return reduce(x, dims).astype("int32")


def _along(operation: Callable[[jax.Array, int], jax.Array]) -> Operation:
    """Return an operation along a random dimension."""

    def apply(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
        return operation(x, choose.randrange(x.ndim)).astype("int32") if x.ndim else x

    return apply


def _slice(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    return x[tuple(slice(choose.randint(0, size // 3), size, choose.choice((1, 1, 2))) for size in x.shape)]


def _pad(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    amounts = [(choose.choice((0, 0, 2)), choose.choice((0, 1)), choose.choice((0, 0, 1))) for _ in x.shape]
    return lax.pad(x, jnp.int32(choose.randint(-3, 3)), amounts)


def _indices(choose: random.Random) -> jax.Array:
    """Return indices, some possibly out of bounds."""
    return jnp.arange(choose.choice(SIZES), dtype="int32") * choose.choice((-3, 1, 5))


def _take(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if not x.ndim:
        return x
    indices = _indices(choose)
    return jnp.take(x, indices, axis=choose.randrange(x.ndim), mode="clip")


def _add_at(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if not x.ndim:
        return x
    indices = _indices(choose)
    updates = jnp.broadcast_to(x[:1], (indices.size, *x.shape[1:])) + indices.reshape(-1, *[1] * (x.ndim - 1))
    at = x.at[indices]
    return choose.choice((at.add, at.max, at.multiply))(updates, mode="drop")


def _dynamic_slice(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if not x.ndim:
        return x
    starts = [jnp.int32(choose.randint(-2, 9)) + x.min() * 0 for _ in x.shape]
    return lax.dynamic_slice(x, starts, [choose.choice((size, size // 2 + 1)) for size in x.shape])


def _dynamic_update(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if not x.ndim:
        return x
    starts = [jnp.int32(choose.randint(-2, 9)) + x.min() * 0 for _ in x.shape]
    update = x[tuple(slice(choose.choice((size, size // 2 + 1))) for size in x.shape)] + 1
    return lax.dynamic_update_slice(x, update, starts)


def _loop(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    like = choose.choice([value for value in values if value.shape == x.shape])
    return lax.fori_loop(0, 3, lambda i, carry: carry * like + i, x)


def _branch(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    like = choose.choice([value for value in values if value.shape == x.shape])
    return lax.cond(x.sum() > 9, lambda x, y: x - y, lambda x, y: jnp.flip(x) * y, x, like)


def _scan(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    if x.ndim < 2:
        return x
    return lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x)[1]


def _window(choose: random.Random, x: jax.Array, values: Sequence[jax.Array]) -> jax.Array:
    sizes = [choose.choice([window for window in (1, 1, 2, 3) if window <= size]) for size in x.shape]
    strides = [choose.choice((1, 1, 2)) for _ in x.shape]
    initial, combine = choose.choice(((0, lax.add), (-(2**31), lax.max)))
    return lax.reduce_window(x, jnp.int32(initial), combine, sizes, strides, choose.choice(("SAME", "VALID")))


OPERATIONS: tuple[Operation, ...] = (
    _unary,
    _binary,
    _binary,
    _dot,
    _dot,
    _transpose,
    _reshape,
    _broadcast,
    _reduce,
    _slice,
    _pad,
    _take,
    _add_at,
    _dynamic_slice,
    _dynamic_update,
    _loop,
    _branch,
    _scan,
    _window,
    _window,
    _along(jnp.cumsum),
    _along(jnp.argmax),
    _along(jnp.sort),
    _along(jnp.flip),
    _along(lambda x, dim: jnp.concatenate([x, x], dim)),
    _along(lambda x, dim: x + lax.broadcasted_iota("int32", x.shape, dim)),
)
