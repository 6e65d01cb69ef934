"""Elementwise operations, reductions, random numbers, and bit operations."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from partitioned_programs import CUBE, Argument, D, M, Program, X, Y, Z, constrain, ints, program


def xorshift(x: jax.Array) -> jax.Array:
    x = x ^ (x << 13)
    x = x ^ (x >> 17)
    return x ^ (x << 5)


def checksum(x: jax.Array) -> jax.Array:
    """Mix words and fold them along every dimension."""
    x = xorshift(x.astype("uint32") + jnp.arange(x.size, dtype="uint32").reshape(x.shape))
    return lax.reduce_xor(x, (0,)) + x.sum(1).sum() + lax.population_count(x).max(0) + lax.clz(x).min(0)


def quantized_product(x: jax.Array, w: jax.Array) -> jax.Array:
    def quantize(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        scale = jnp.abs(x).max(1, keepdims=True) / 127
        return jnp.round(x / scale).astype("int8"), scale

    (x, x_scale), (w, w_scale) = quantize(x), quantize(w.T)
    return lax.dot_general(x, w, (((1,), (1,)), ((), ())), preferred_element_type="int32") * x_scale * w_scale.T


def packed(x: jax.Array) -> jax.Array:
    """Pack eight booleans into a byte."""
    bits = (x % 2).reshape(x.shape[0], -1, 8)
    return jnp.sum(bits << jnp.arange(8), -1).astype("uint8")


def sum_and_largest(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Compute a sum and a maximum in one variadic reduction."""
    return lax.reduce((x, y), (0.0, -jnp.inf), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,))


def root_mean_square_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalize by the root mean square, in a composite like those that libraries use to select a kernel."""

    def norm(x: jax.Array, scale: jax.Array, *, epsilon: float) -> jax.Array:
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale

    return jnp.tanh(lax.composite(norm, "my.rms_norm")(x, scale, epsilon=np.float32(1e-6)))


def composed(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Compose the functions t -> x * t + y along each row; the order matters."""
    return lax.reduce((x % 3 - 1, y), (np.int32(1), np.int32(0)), lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (1,))


def dropout(x: jax.Array, key: jax.Array) -> jax.Array:
    return jnp.where(jax.random.bernoulli(key, 0.7, x.shape), x / 0.7, 0)


def pi(key: jax.Array) -> jax.Array:
    x, y = constrain(jax.random.uniform(key, (2, 64, 32)), None, D, M)
    return jnp.mean(x * x + y * y < 1) * 4


_SPLIT, _INTEGERS, _KEY = Argument((16, 32), (D, M)), ints((16, 32), D, M), Argument((2,), (), "uint32")

PROGRAMS: dict[str, Program] = {
    "composite": program(root_mean_square_norm, _SPLIT, Argument((32,), (M,))),
    "log-sum-exp": program(lambda x: jax.nn.logsumexp(x, axis=1), _SPLIT),
    "softmax": program(lambda x: (jax.nn.softmax(x, 0), jax.nn.softmax(x, 1)), _SPLIT),
    "reductions": program(lambda x: (x.max(), (x + 1).prod(axis=1), (x > 0.1).any(axis=1)), _SPLIT),
    "reductions over three axes": program(
        lambda x: (x.sum((0, 2)), x.max(1), x.var()), Argument((8, 8, 8), (X, Y, Z)), mesh=CUBE
    ),
    "reduction of integers": program(lambda x: (lax.reduce_xor(x, (1,)), x.min(), lax.reduce_or(x, (0,))), _INTEGERS),
    "reduction of booleans": program(lambda x: (x.any(0), x.all(1), x.sum()), Argument((16, 32), (D, M), "bool")),
    "reduction from a value": program(lambda x, i: lax.reduce(x, i, lax.add, (0, 1)), _SPLIT, Argument(())),
    "reduction of bits from a value": program(
        lambda x: (lax.reduce(x, np.int32(5), lax.bitwise_xor, (0, 1)), lax.reduce(x, np.int32(3), lax.mul, (0,))),
        _INTEGERS,
    ),
    "reduction of several": program(sum_and_largest, _SPLIT, _SPLIT),
    "reduction in order": program(composed, _INTEGERS, _INTEGERS),
    "moments": program(lambda x: (x.mean(0), x.std(1), jnp.linalg.norm(x), jnp.ptp(x, 0)), _SPLIT),
    "iota and constants": program(
        lambda x: x * jnp.eye(16, 32) + np.arange(512, dtype="float32").reshape(16, 32), _SPLIT
    ),
    "narrow floats": program(
        lambda x: (x.astype("bfloat16") * 3 + 1, x.astype("float16").sum(1)), _SPLIT, tolerance=1e-2
    ),
    "checksum": program(checksum, _INTEGERS),
    "bits of floats": program(lambda x: lax.bitcast_convert_type(x, jnp.int32) ^ 7, _SPLIT),
    "bytes of floats": program(lambda x: lax.bitcast_convert_type(x, jnp.uint8), _SPLIT),
    "quotients": program(
        lambda x, y: (x // (y + 1), x % (y + 1), x**3, lax.shift_right_logical(x, y)), _INTEGERS, _INTEGERS
    ),
    "quantized product": program(quantized_product, Argument((16, 32), (D, M)), Argument((32, 8), (M,))),
    "packed bits": program(packed, _INTEGERS),
    "random bits": program(lambda x: x + lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (16, 32))[1] % 8, _SPLIT),
    "random numbers": program(
        lambda k: (constrain(jax.random.uniform(k, (16, 32)), D, M), constrain(jax.random.randint(k, (16,), 0, 9), M)),
        _KEY,
    ),
    "random permutation": program(jax.random.permutation, _KEY, ints((16,), D)),
    "random weights": program(lambda k: constrain(jax.random.normal(k, (8, 16)), D, M), _KEY),
    "dropout": program(dropout, _SPLIT, _KEY),
    "circle": program(pi, _KEY),
}
