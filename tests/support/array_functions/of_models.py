"""Parts of models: normalizations, attention, losses, convolutions, loops."""

# The stubs in typings/ have the functions that sdy uses, not these.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax import lax

from array_functions.array_function import HEADS, MATRIX, SQUARE, TENSOR, ArrayFunction, differentiable, other

key = jax.random.key(0)

FUNCTIONS: dict[str, ArrayFunction] = {
    "layernorm": differentiable(
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), MATRIX
    ),
    "batchnorm": differentiable(lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5), MATRIX),
    "groupnorm": differentiable(
        lambda x: (
            lambda g: ((g - g.mean((1, 3), keepdims=True)) / jnp.sqrt(g.var((1, 3), keepdims=True) + 1e-5)).reshape(
                8, 16, 24
            )
        )(x.reshape(8, 16, 4, 6)),
        TENSOR,
    ),
    "softmax0": differentiable(lambda x: jax.nn.softmax(x, 0), MATRIX),
    "softmax all": differentiable(lambda x: jax.nn.softmax(x.ravel()), MATRIX),
    "softmax where": differentiable(lambda x: jax.nn.softmax(x, -1, where=x > -1), MATRIX),
    "log_softmax0": differentiable(lambda x: jax.nn.log_softmax(x, axis=0), MATRIX),
    "l2norm": differentiable(lambda x: x / jnp.linalg.norm(x, axis=0, keepdims=True), MATRIX),
    "whiten": differentiable(
        lambda x: (x - x.mean(0)) @ jnp.linalg.inv(jnp.linalg.cholesky(jnp.cov(x, rowvar=False) + jnp.eye(16))).T,
        MATRIX,
    ),
    "std all": differentiable(lambda x: x / x.std(), TENSOR),
    "minmax": differentiable(
        lambda x: (x - x.min(1, keepdims=True)) / (x.max(1, keepdims=True) - x.min(1, keepdims=True)), MATRIX
    ),
    "argmax gather": differentiable(lambda x: jnp.take_along_axis(x, jnp.argmax(x, 1)[:, None], 1), MATRIX),
    "topk mask": differentiable(lambda x: jnp.where(x >= lax.top_k(x, 4)[0][:, -1:], x, 0), MATRIX),
    "topk1 softmax": differentiable(lambda x: jax.nn.softmax(lax.top_k(x, 2)[0]), MATRIX),
    "sort rows": differentiable(lambda x: jnp.sort(x, 0), MATRIX),
    "argsort inv": other(lambda x: jnp.argsort(jnp.argsort(x, 1), 1), MATRIX),
    "cumsum0": differentiable(lambda x: jnp.cumsum(x, 0), MATRIX),
    "cumsum flat": differentiable(lambda x: jnp.cumsum(x), MATRIX),
    "cumprod": differentiable(lambda x: jnp.cumprod(jnp.tanh(x) + 1.0, 0), MATRIX),
    "cummax1": differentiable(lambda x: lax.cummax(x, 1), MATRIX),
    "exp moving avg": differentiable(lambda x: lax.scan(lambda c, v: (0.9 * c + v,) * 2, jnp.zeros(16), x)[1], MATRIX),
    "ema assoc": differentiable(
        lambda x: lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.full_like(x, 0.9), x))[1],
        MATRIX,
    ),
    "reverse scan": differentiable(
        lambda x: lax.scan(lambda c, v: (0.9 * c + v,) * 2, jnp.zeros(16), x, reverse=True)[1], MATRIX
    ),
    "scan cols": differentiable(lambda x: lax.scan(lambda c, v: (c * v, c), jnp.ones(32), x.T)[1], MATRIX),
    "mha": differentiable(
        lambda q, k, v: jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k)), v),
        HEADS,
        HEADS,
        HEADS,
    ),
    "causal": differentiable(
        lambda q, k: jax.nn.softmax(
            jnp.where(jnp.tril(jnp.ones((16, 16), bool)), jnp.einsum("bqhd,bkhd->bhqk", q, k), -1e9)
        ),
        HEADS,
        HEADS,
    ),
    "rope": differentiable(
        lambda x: (lambda a, b, c, s: jnp.concatenate([a * c - b * s, b * c + a * s], -1))(
            x[..., :4], x[..., 4:], jnp.cos(jnp.arange(16.0))[:, None, None], jnp.sin(jnp.arange(16.0))[:, None, None]
        ),
        HEADS,
    ),
    "rope interleaved": differentiable(lambda x: jnp.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape), HEADS),
    "alibi": differentiable(
        lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k) - jnp.abs(jnp.arange(16)[:, None] - jnp.arange(16)),
        HEADS,
        HEADS,
    ),
    "rel shift": differentiable(
        lambda x: jnp.pad(x, ((0, 0), (0, 0), (1, 0))).reshape(8, 25, 16)[:, 1:].reshape(8, 16, 24), TENSOR
    ),
    "local chunks": differentiable(
        lambda x: jnp.einsum("bcqd,bckd->bcqk", x.reshape(8, 4, 4, 24), x.reshape(8, 4, 4, 24)), TENSOR
    ),
    "swiglu": differentiable(lambda x, w: jax.nn.silu(x @ w[:, :8]) * (x @ w[:, 8:]), (32, 16), (16, 16)),
    "lora": differentiable(lambda x, w: x @ w + (x @ w[:, :2]) @ w[:2], (32, 16), (16, 16)),
    "moe dense": differentiable(
        lambda x, w: jnp.einsum("ne,nd,edf->nf", jax.nn.softmax(x[:, :8]), x, w), (32, 16), (8, 16, 24)
    ),
    "moe onehot": differentiable(
        lambda x, w: jnp.einsum("ne,nd,edf->nf", jax.nn.one_hot(jnp.argmax(x[:, :8], 1), 8), x, w),
        (32, 16),
        (8, 16, 24),
    ),
    "embed bag": differentiable(lambda t, x: t[(jnp.abs(x) * 9).astype(int) % 64].sum(1), (64, 16), (32, 4)),
    "ce loss": differentiable(
        lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x), (jnp.arange(32) % 16)[:, None], 1).mean(), MATRIX
    ),
    "ce smooth": differentiable(
        lambda x: -(jax.nn.log_softmax(x) * (jax.nn.one_hot(jnp.arange(32) % 16, 16) * 0.9 + 0.1 / 16)).sum(-1).mean(),
        MATRIX,
    ),
    "contrastive": differentiable(
        lambda x, y: jax.nn.logsumexp(x @ y.T, 1).mean() - jnp.diag(x @ y.T).mean(), MATRIX, MATRIX
    ),
    "triplet": differentiable(lambda x: jnp.maximum(0, ((x[::2] - x[1::2]) ** 2).sum(-1) - 1).mean(), MATRIX),
    "kl": differentiable(
        lambda x, y: (jax.nn.softmax(x) * (jax.nn.log_softmax(x) - jax.nn.log_softmax(y))).sum(), MATRIX, MATRIX
    ),
    "conv1d same": differentiable(
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        (8, 16, 24),
        (3, 24, 8),
    ),
    "conv1d causal s2": differentiable(
        lambda x, w: lax.conv_general_dilated(x, w, (2,), [(2, 0)], dimension_numbers=("NWC", "WIO", "NWC")),
        (8, 16, 24),
        (3, 24, 8),
    ),
    "depthwise": differentiable(
        lambda x: lax.conv_general_dilated(
            x, jnp.ones((3, 1, 24)), (1,), "SAME", feature_group_count=24, dimension_numbers=("NWC", "WIO", "NWC")
        ),
        TENSOR,
    ),
    "avg pool1": differentiable(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 1), (1, 2, 1), "VALID"), TENSOR),
    "max pool ov": differentiable(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 1), (1, 2, 1), "SAME"), TENSOR
    ),
    "unpool": differentiable(lambda x: jnp.repeat(jnp.repeat(x, 2, 0), 2, 1), MATRIX),
    "interp half": differentiable(lambda x: (x[::2] + x[1::2]) / 2, MATRIX),
    "vmap inner": differentiable(lambda x, y: jax.vmap(jnp.vdot)(x, y), MATRIX, MATRIX),
    "vmap mat": differentiable(lambda x: jax.vmap(lambda a: a @ a.T)(x), TENSOR),
    "vmap dynamic": differentiable(
        lambda x: jax.vmap(lambda r, i: lax.dynamic_slice(r, (i,), (4,)))(x, jnp.arange(32) % 12), MATRIX
    ),
    "vmap scan": differentiable(
        lambda x: jax.vmap(lambda r: lax.scan(lambda c, v: (c + v, c * v), 0.0, r)[1])(x), MATRIX
    ),
    "fori matmul": other(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c @ c.T @ c), x), MATRIX),
    "scan mm": differentiable(
        lambda x, w: lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0], MATRIX, SQUARE
    ),
    "switch": differentiable(
        lambda x: lax.switch(jnp.argmax(x[0]) % 3, [lambda v: v, lambda v: v.T.T * 2, lambda v: jnp.flip(v, 0)], x),
        MATRIX,
    ),
    "while norm": other(lambda x: lax.while_loop(lambda v: jnp.linalg.norm(v) > 1, lambda v: v * 0.5, x), MATRIX),
    "custom vjp": differentiable(lambda x: jax.nn.relu(x) + jax.nn.gelu(x) + jax.nn.softplus(x), MATRIX),
    "remat": differentiable(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.cumsum(v, 0)))(x), MATRIX),
    "jvp": differentiable(lambda x: jax.jvp(lambda v: jnp.sin(v @ v.T), (x,), (x,))[1], MATRIX),
    "hvp": differentiable(lambda x: jax.jvp(jax.grad(lambda v: (jnp.sin(v) ** 3).sum()), (x,), (x,))[1], MATRIX),
    "linearize": differentiable(lambda x: jax.linearize(lambda v: v @ v.T, x)[1](x), MATRIX),
    "sinkhorn": differentiable(
        lambda x: lax.scan(
            lambda c, _: ((lambda u: u / u.sum(0, keepdims=True))(c / c.sum(1, keepdims=True)), None),
            jnp.exp(x),
            None,
            length=4,
        )[0],
        MATRIX,
    ),
    "complex": differentiable(lambda x, y: jnp.abs((x + 1j * y) @ (x - 1j * y).T), MATRIX, MATRIX),
    "int div mod": other(lambda x: ((x * 99).astype(int) // 7, (x * 99).astype(int) % 5), MATRIX),
    "bits": other(lambda x: jnp.bitwise_xor.reduce((x * 99).astype(jnp.int32), axis=0), MATRIX),
    "all any": other(lambda x: (jnp.all(x > -3, 0), jnp.any(x > 2, 1), jnp.count_nonzero(x > 0)), MATRIX),
    "bf16 mm": differentiable(
        lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16).T).astype(jnp.float32), MATRIX, MATRIX
    ),
    "f16 sum": other(lambda x: x.astype(jnp.float16).sum(0), MATRIX),
    "int8 mm": other(
        lambda x, y: lax.dot_general(
            (x * 9).astype(jnp.int8),
            (y * 9).astype(jnp.int8),
            (((1,), (1,)), ((), ())),
            preferred_element_type=jnp.int32,
        ),
        MATRIX,
        MATRIX,
    ),
    "rng uniform": differentiable(lambda x: x + jax.random.uniform(key, x.shape), MATRIX),
    "dropout": differentiable(lambda x: jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0), MATRIX),
    "fold_in rows": differentiable(
        lambda x: jax.vmap(lambda i, r: r + jax.random.normal(jax.random.fold_in(key, i), r.shape))(jnp.arange(32), x),
        MATRIX,
    ),
    "gumbel": other(lambda x: jnp.argmax(x + jax.random.gumbel(key, x.shape), -1), MATRIX),
    "split keys": differentiable(
        lambda x: jax.vmap(lambda k: jax.random.normal(k, (4,)))(jax.random.split(key, 32)) + x[:, :4], MATRIX
    ),
    "fft conv": differentiable(
        lambda x, y: jnp.fft.irfft(jnp.fft.rfft(x, axis=1) * jnp.fft.rfft(y, axis=1), axis=1), MATRIX, MATRIX
    ),
    "fft0": differentiable(lambda x: jnp.abs(jnp.fft.fft(x, axis=0)), MATRIX),
    "hilbert": differentiable(
        lambda x: jnp.abs(jnp.fft.ifft(jnp.fft.fft(x, axis=0) * jnp.where(jnp.arange(32) < 16, 2, 0)[:, None], axis=0)),
        MATRIX,
    ),
    "qr": differentiable(lambda x: jnp.linalg.qr(x)[1], MATRIX),
    "chol solve": differentiable(
        lambda x, y: jsp.linalg.solve_triangular(jnp.linalg.cholesky(x @ x.T + 16 * jnp.eye(16)), y, lower=True),
        SQUARE,
        SQUARE,
    ),
    "svd rec": other(lambda x: (lambda u, s, v: (u * s) @ v)(*jnp.linalg.svd(x, full_matrices=False)), MATRIX),
    "matpow": differentiable(lambda x: jnp.linalg.matrix_power(x / 4, 5), SQUARE),
    "multi_dot": differentiable(lambda x, y: jnp.linalg.multi_dot([x, y.T, x]), MATRIX, MATRIX),
    "gram": differentiable(lambda x: x.T @ x, MATRIX),
    "quadform": differentiable(lambda x, y: jnp.einsum("ni,ij,nj->n", x, y, x), MATRIX, SQUARE),
    "kalman": differentiable(
        lambda x, y: y @ (x @ x.T + jnp.eye(16)) @ jnp.linalg.inv(y @ x @ y.T / 16 + 16 * jnp.eye(16)), SQUARE, SQUARE
    ),
}
