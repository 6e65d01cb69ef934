"""Random programs of a few arrays: few enough layouts for exhaustive search, large enough for sharding to pay off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

_WIDTHS = (1024, 2048, 4096, 8192)
_BATCHES = (2048, 8192, 32768, 131072)
_STEPS = (2, 8)
"""The minimal and maximal number of operations of a composed random program."""


@dataclass(frozen=True)
class SmallProgram:
    """A function, and the types of its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[jax.ShapeDtypeStruct]


def small_program(random: Random) -> SmallProgram:
    """Draw a program of two to four arrays of rank one to three."""
    name = random.choice([*_KINDS])
    function, arguments = _KINDS[name](random)
    return SmallProgram(f"{name} {' '.join(_shown(each) for each in arguments)}", function, arguments)


_Made = tuple[Callable[..., Any], Sequence[jax.ShapeDtypeStruct]]


def _shown(array: jax.ShapeDtypeStruct) -> str:
    return "x".join(map(str, array.shape))


def _array(*shape: int, dtype: Any = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _width(random: Random) -> int:
    return random.choice(_WIDTHS)


def _batch(random: Random) -> int:
    return random.choice(_BATCHES)


def _product(random: Random) -> _Made:
    rows, summed, columns = _batch(random), _width(random), _width(random)

    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    return product, [_array(rows, summed), _array(summed, columns)]


def _perceptron(random: Random) -> _Made:
    rows, width, hidden = _batch(random), _width(random), _width(random)
    activation = random.choice([jnp.tanh, jax.nn.relu, jax.nn.gelu])

    def perceptron(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        return x + activation(x @ up) @ down

    return perceptron, [_array(rows, width), _array(width, hidden), _array(hidden, width)]


def _chain(random: Random) -> _Made:
    sizes = [_batch(random), *[_width(random) for _ in range(4)]]

    def chain(x: jax.Array, u: jax.Array, v: jax.Array, w: jax.Array) -> jax.Array:
        return ((x @ u) @ v) @ w

    return chain, [_array(*pair) for pair in pairwise(sizes)]


def _layer_norm(random: Random) -> _Made:
    def norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
        centered = x - x.mean(-1, keepdims=True)
        return centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-6) * scale + bias

    width = _width(random)
    return norm, [_array(_batch(random), width), _array(width), _array(width)]


def _projected_norm(random: Random) -> _Made:
    def norm(x: jax.Array, scale: jax.Array, w: jax.Array) -> jax.Array:
        return (x * lax.rsqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale) @ w

    width = _width(random)
    return norm, [_array(_batch(random), width), _array(width), _array(width, _width(random))]


def _attention(random: Random) -> _Made:
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k)), v)

    heads, queries, keys, size = random.choice((2, 16, 64)), _width(random), _width(random), random.choice((64, 128))
    return attention, [_array(heads, queries, size), *[_array(heads, keys, size)] * 2]


def _gradient_step(random: Random) -> _Made:
    def step(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        return w - 0.1 * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)

    rows, width, columns = _batch(random), _width(random), _width(random)
    return step, [_array(width, columns), _array(rows, width), _array(rows, columns)]


def _training_step(random: Random) -> _Made:
    def step(u: jax.Array, v: jax.Array, x: jax.Array) -> Any:
        grads = jax.grad(lambda u, v: jnp.mean((jax.nn.relu(x @ u) @ v - x) ** 2), (0, 1))(u, v)
        return u - 0.1 * grads[0], v - 0.1 * grads[1]

    rows, width, hidden = _batch(random), _width(random), _width(random)
    return step, [_array(width, hidden), _array(hidden, width), _array(rows, width)]


def _embedding(random: Random) -> _Made:
    table = _array(_batch(random), _width(random))
    tokens, width = _array(_batch(random), dtype="int32"), table.shape[1]

    def embedded(table: jax.Array, tokens: jax.Array, w: jax.Array) -> jax.Array:
        return table[tokens] @ w

    return embedded, [table, tokens, _array(width, _width(random))]


def _embedding_step(random: Random) -> _Made:
    def step(table: jax.Array, tokens: jax.Array, y: jax.Array) -> jax.Array:
        return table - 0.1 * jax.grad(lambda table: jnp.mean((table[tokens] - y) ** 2))(table)

    rows, width, tokens = _batch(random), _width(random), _batch(random)
    return step, [_array(rows, width), _array(tokens, dtype="int32"), _array(tokens, width)]


def _convolution(random: Random) -> _Made:
    def convolved(x: jax.Array, u: jax.Array, v: jax.Array) -> jax.Array:
        def along(x: jax.Array, w: jax.Array) -> jax.Array:
            return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))

        return along(jax.nn.relu(along(x, u)), v)

    images, length, channels = random.choice((16, 64)), _width(random), random.choice((64, 256, 1024))
    return convolved, [_array(images, length, channels), *[_array(3, channels, channels)] * 2]


def _reduction(random: Random) -> _Made:
    axis = random.choice((0, 1))
    rows, width = _batch(random), _width(random)

    def reduced(x: jax.Array, y: jax.Array) -> Any:
        return jnp.exp(x - x.max(axis, keepdims=True)) * y, (x * y).sum(axis)

    return reduced, [_array(rows, width)] * 2


def _transposed(random: Random) -> _Made:
    rows, columns = _batch(random), _width(random)

    def transposed(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
        return (x + y.T) @ w

    return transposed, [_array(rows, columns), _array(columns, rows), _array(columns, columns)]


def _reshaped(random: Random) -> _Made:
    def heads(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
        split = (x @ w).reshape(x.shape[0], -1, 128)
        return jnp.einsum("bhd,hdw->bw", jnp.tanh(split), v)

    rows, width, inner = _batch(random), _width(random), _width(random)
    return heads, [_array(rows, width), _array(width, inner), _array(inner // 128, 128, width)]


def _experts(random: Random) -> _Made:
    def mixed(x: jax.Array, gate: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.einsum("te,tw,ewh->th", jax.nn.softmax(x @ gate), x, w)

    tokens, width, experts = random.choice((1024, 4096)), random.choice((512, 1024)), random.choice((4, 8))
    return mixed, [_array(tokens, width), _array(width, experts), _array(experts, width, random.choice((512, 1024)))]


def _loop(random: Random) -> _Made:
    def repeated(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.fori_loop(0, 8, lambda _, x: jnp.tanh(x @ w), x)

    width = _width(random)
    return repeated, [_array(_batch(random), width), _array(width, width)]


def _sorted(random: Random) -> _Made:
    rows, width = random.choice((512, 2048)), _width(random)

    def ordered(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sort(x, -1) @ w

    return ordered, [_array(rows, width), _array(width, _width(random))]


def _by_chance(random: Random) -> _Made:
    """Compose random operations on two or three matrices and on earlier results."""
    sizes = [_width(random), _width(random)]
    arguments = [_array(random.choice(sizes), random.choice(sizes)) for _ in range(random.choice((2, 3)))]
    seed, steps = random.random(), random.randint(*_STEPS)

    def program(*values: jax.Array) -> list[jax.Array]:
        drawn, made, used = Random(seed), [*values], set[int]()
        for _ in range(steps):
            left, right = drawn.randrange(len(made)), drawn.randrange(len(made))
            x, y = made[left], made[right]
            fitting = [each for fits, each in _BINARY if fits(x, y)]
            used |= {left, right} if fitting else {left}
            made.append(drawn.choice(fitting)(x, y) if fitting else drawn.choice(_UNARY)(x))
        return [value for index, value in enumerate(made) if index not in used]

    return program, arguments


_BINARY: Sequence[tuple[Callable[[Any, Any], bool], Callable[[Any, Any], jax.Array]]] = (
    (lambda x, y: x.shape[1] == y.shape[0], lambda x, y: x @ y),
    (lambda x, y: x.shape == y.shape, lambda x, y: x * y),
    (lambda x, y: x.shape == y.shape[::-1], lambda x, y: x + y.T),
    (lambda x, y: x.shape[1] == y.shape[1], lambda x, y: x + y.mean(0)),
)
_UNARY: Sequence[Callable[[Any], jax.Array]] = (
    jnp.tanh,
    jnp.transpose,
    lambda x: jax.nn.softmax(x, -1),
    lambda x: x - x.mean(0),
)

_KINDS: dict[str, Callable[[Random], _Made]] = {
    "product": _product,
    "perceptron": _perceptron,
    "chain of products": _chain,
    "layer norm": _layer_norm,
    "projected norm": _projected_norm,
    "attention": _attention,
    "gradient step": _gradient_step,
    "training step": _training_step,
    "embedding": _embedding,
    "embedding step": _embedding_step,
    "convolution": _convolution,
    "reduction": _reduction,
    "transposed": _transposed,
    "reshaped": _reshaped,
    "experts": _experts,
    "loop": _loop,
    "sorted": _sorted,
    "by chance": _by_chance,
}
