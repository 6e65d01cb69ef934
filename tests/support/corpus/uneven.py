"""Dimensions that their axes do not divide."""

import jax
import jax.numpy as jnp
import numpy as np

from partitioned_programs import Argument, D, M, Program, constrain, program, split


def whole(*shape: int, dtype: str = "float32") -> Argument:
    """Declare a replicated argument."""
    return Argument(shape, (), dtype)


ODD = whole(13, 7)
INTEGERS = whole(13, 7, dtype="int32")
INDEX = whole(dtype="int32")
IMAGES, KERNEL = whole(3, 5, 8, 8), whole(7, 5, 3, 3)


def convolve(x: jax.Array, kernel: jax.Array, groups: int = 1) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", feature_group_count=groups)


def max_pool(x: jax.Array) -> jax.Array:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def cross_entropy(w: jax.Array, x: jax.Array, labels: jax.Array) -> jax.Array:
    logits = constrain(constrain(x, D, None) @ constrain(w, None, M), D, M)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def embedding(table: jax.Array, tokens: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(constrain(table, M, None)[constrain(tokens, D, None)]))


PROGRAMS: dict[str, Program] = {
    "elementwise": program(split(lambda x, y: jnp.sin(x) * y + 1), ODD, ODD),
    "one element": program(split(lambda x: (x + 1, x.sum(), x * 2 @ x)), whole(1, 1)),
    "fewer elements than devices": program(split(lambda x: (jnp.exp(x) @ x.T).sum(0)), whole(3, 1)),
    "matmul": program(split(jnp.matmul), ODD, whole(7, 5)),
    "matmul of integers": program(split(jnp.matmul), INTEGERS, whole(7, 5, dtype="int32")),
    "matmul of bfloat16": program(
        split(jnp.matmul), whole(13, 7, dtype="bfloat16"), whole(7, 5, dtype="bfloat16"), tolerance=1e-2
    ),
    "contraction of integers": program(
        lambda x, y: (constrain(x, None, M) + 1) @ (constrain(y, M, None) + 1), INTEGERS, whole(7, 5, dtype="int32")
    ),
    "contraction of what is NaN in the padding": program(
        lambda x, y: (constrain(x, None, D) / constrain(x, None, D)) @ jnp.exp(constrain(y, D, M)), ODD, whole(7, 5)
    ),
    "reductions": program(
        split(lambda x: (x.max(), x.min(0), x.prod(1), (x > 0).any(), (x > -9).all(1), x.mean())), ODD
    ),
    "reductions of integers": program(
        split(lambda x: (x.max(), x.min(0), x.sum(), jax.lax.reduce_xor(x, (1,)), jax.lax.reduce_and(x, (0,)))),
        INTEGERS,
    ),
    "variance": program(split(lambda x: jnp.var(x, 0)), ODD),
    "softmax": program(split(lambda x: (jax.nn.softmax(x, 1), jax.nn.logsumexp(x, 0))), ODD),
    "argmax": program(split(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0))), ODD),
    "cumsum": program(split(lambda x: (jnp.cumsum(x, 1), jnp.cumsum(x, 0))), ODD),
    "cumulative, from the end": program(
        split(lambda x: (jax.lax.cummax(x, 0, reverse=True), jax.lax.cumlogsumexp(x, 1, reverse=True))), ODD
    ),
    "column": program(split(lambda x: x[:, 0]), whole(16, 32)),
    "slices": program(split(lambda x: (x[:12], x[2:9], x[::2], x[:11, :6])), ODD),
    "slice that makes padding": program(split(lambda x: constrain(x[:14], D, M).sum(0)), whole(16, 8)),
    "pads": program(split(lambda x: jax.lax.pad(x, 2.0, ((1, 2, 0), (0, 1, 1)))), ODD),
    "pad into the padding": program(
        split(lambda x: constrain(jax.lax.pad(x, 2.0, ((0, 2, 0), (0, 1, 0))), D, M) * 2), ODD
    ),
    "reverse": program(split(lambda x: x[::-1]), ODD),
    "concatenate": program(split(lambda x, y: jnp.concatenate([x, y])), ODD, whole(5, 7)),
    "reshapes": program(split(lambda x: (x.reshape(-1), x.reshape(13, 7, 1))), ODD),
    "reshape with nothing in common": program(lambda x: constrain(x.reshape(2, 26, 2), M) + 1, whole(13, 8)),
    "transpose": program(split(lambda x: constrain(x.T, D, M)), ODD),
    "broadcasts": program(
        lambda x: constrain(jnp.broadcast_to(constrain(x[:, None], D, M), (13, 7)), D, M) + constrain(x[:7], M),
        whole(13),
    ),
    "iota and constants": program(
        split(lambda x: x * jnp.eye(13, 7) + np.arange(91, dtype="float32").reshape(13, 7)), ODD
    ),
    "random bits": program(split(lambda x: x + jax.random.uniform(jax.random.key(1), (13, 7))), ODD),
    "sort": program(split(lambda x: (jnp.sort(x, 0), jnp.sort(x, 1))), ODD),
    "top-k": program(split(lambda x: jax.lax.top_k(x, 3)), ODD),
    "dynamic slice": program(lambda x, i: jax.lax.dynamic_slice(constrain(x, D, M), (i * 3, 0), (4, 7)), ODD, INDEX),
    "dynamic update": program(
        lambda x, u, i: jax.lax.dynamic_update_slice(constrain(x, D, M), u, (i * 3, i * 5)), ODD, whole(3, 5), INDEX
    ),
    "update at the end": program(
        lambda x, u: jax.lax.dynamic_update_slice(constrain(x, D, M), u, (12, 9)), ODD, whole(3, 5)
    ),
    "gather": program(lambda t, i: constrain(t, D, M)[constrain(i * 3 - 2, D)], ODD, whole(5, dtype="int32")),
    "gather outside": program(
        lambda t, i: jnp.take(constrain(t, D, M), constrain(i * 5 - 9, D), axis=0, mode="clip"),
        ODD,
        whole(9, dtype="int32"),
    ),
    "gather by narrow indices": program(
        lambda t, i: constrain(t, D, M)[constrain(i, M)], whole(301, 3), whole(5, dtype="uint8")
    ),
    "gather in batches": program(
        lambda t, i: jnp.take_along_axis(constrain(t, D, None), constrain(i % 7, D, None), 1),
        ODD,
        whole(13, 3, dtype="int32"),
    ),
    "scatter at one place": program(
        lambda t, i, u: constrain(t, D, M).at[i].set(constrain(u, None, M)), ODD, whole(1, dtype="int32"), whole(1, 7)
    ),
    "scatter outside": program(
        lambda t, i, u: constrain(t, D, M).at[i * 7 - 5].add(constrain(u, None, M), mode="drop"),
        ODD,
        whole(5, dtype="int32"),
        whole(5, 7),
    ),
    "scatter in batches": program(
        lambda t, i, u: constrain(t, None, M).at[constrain(i, D)].add(constrain(u, D, M)),
        ODD,
        whole(5, dtype="int32"),
        whole(5, 7),
    ),
    "scatter by narrow indices": program(
        lambda t, i, u: constrain(t, None, M).at[constrain(i, D)].max(constrain(u, D, M)),
        ODD,
        whole(5, dtype="uint8"),
        whole(5, 7),
    ),
    "convolution": program(
        lambda x, k: convolve(jnp.exp(constrain(x, D, M)) / 9, jnp.exp(constrain(k, None, M)) / 9), IMAGES, KERNEL
    ),
    "convolution, features of the result split": program(lambda x, k: convolve(x, constrain(k, M, D)), IMAGES, KERNEL),
    "convolution, space split": program(
        lambda x, k: convolve(constrain(x, None, None, D, M), k), whole(3, 5, 9, 7), KERNEL
    ),
    "convolution's gradients, space split": program(
        jax.grad(lambda x, k: jnp.sum(jnp.sin(convolve(constrain(x, None, None, D, M), k))), (0, 1)),
        whole(3, 5, 9, 7),
        KERNEL,
    ),
    "convolution in groups": program(
        lambda x, k: convolve(constrain(x, D, M, None, None), k, 5), whole(3, 15, 8, 8), whole(10, 3, 3, 3)
    ),
    "pooling": program(lambda x: max_pool(constrain(x, D, M, None, None)), IMAGES),
    "pooling, space split": program(lambda x: max_pool(constrain(x, None, None, D, M)), whole(3, 5, 9, 7)),
    "pooling's gradient": program(
        jax.grad(lambda x: jnp.sum(jnp.sin(max_pool(constrain(x, D, M, None, None))))), IMAGES
    ),
    "while": program(
        split(lambda x: jax.lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 1.5 + constrain(x, D, M), x + 1)), ODD
    ),
    "scan": program(
        lambda x, xs: jax.lax.scan(lambda c, a: (c + a, c * a), x, constrain(xs, D, M)), whole(7), whole(5, 7)
    ),
    "cond": program(
        lambda x, p: jax.lax.cond(p > 3, lambda x: jnp.tanh(x @ x.T), lambda x: x @ x.T, constrain(x, D, M)), ODD, INDEX
    ),
    "fourier transform": program(lambda x: jnp.fft.fft2(constrain(x, D, M, None)), whole(3, 5, 8, dtype="complex64")),
    "cholesky": program(
        lambda x: jnp.linalg.cholesky(constrain(x @ x.mT + 5 * jnp.eye(7), D, M, None)), whole(3, 7, 7)
    ),
    "triangular solve": program(
        lambda a, b: jax.scipy.linalg.solve_triangular(a + 9 * jnp.eye(8), constrain(b, None, D)),
        whole(8, 8),
        whole(8, 13),
    ),
    "other axes": program(lambda x: constrain(constrain(constrain(x, D, M) * 2, M, D) * 3, (D, M), None) * 4, ODD),
    "fewer axes": program(
        lambda x: constrain(constrain(constrain(x, (D, M), None) * 2, D, None) * 3, None, (D, M)) * 4, ODD
    ),
    "some of the axes": program(
        lambda x: constrain(constrain(constrain(x, (D, M)) + 1, D) * 2, (D, M)) + constrain(x, D), whole(3)
    ),
    "even parts and uneven ones": program(lambda x: constrain(constrain(x, D) * 2, (D, M)) + 1, whole(20, 4)),
    "partial results in even parts, summed in uneven ones": program(
        lambda x: constrain(constrain(x, D, M).sum(1), (D, M)) + constrain(x.sum(1) * 3, D), whole(12, 4)
    ),
    "embedding's gradient": program(jax.grad(embedding), whole(257, 9), whole(13, 3, dtype="int32")),
    "odd vocabulary": program(jax.grad(cross_entropy), whole(5, 101), whole(13, 5), whole(13, dtype="int32")),
}
