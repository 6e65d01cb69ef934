"""Functions of `jax.numpy` and `jax.lax`."""

# The stubs in typings/ have the functions that sdy uses, not these.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false, reportUnknownVariableType=false

import jax
import jax.numpy as jnp
from jax import lax

from array_functions.array_function import IMAGE, MATRIX, SQUARE, VECTOR, ArrayFunction, differentiable, other

FUNCTIONS: dict[str, ArrayFunction] = {
    "interp": differentiable(lambda x, y: jnp.interp(x, jnp.linspace(-1, 1, 64), y), VECTOR, VECTOR),
    "digitize": other(lambda x: jnp.digitize(x, jnp.linspace(-1, 1, 5)), MATRIX),
    "histogram2d": other(lambda x, y: jnp.histogram2d(x, y, bins=4, range=((-1, 1), (-1, 1)))[0], VECTOR, VECTOR),
    "convolve": differentiable(lambda x, y: jnp.convolve(x, y[:5], mode="same"), VECTOR, VECTOR),
    "correlate": differentiable(lambda x, y: jnp.correlate(x, y[:8], mode="full"), VECTOR, VECTOR),
    "polyfit": differentiable(lambda x, y: jnp.polyfit(x, y, 3), VECTOR, VECTOR),
    "polyval": differentiable(lambda x, y: jnp.polyval(x[:5], y), VECTOR, MATRIX),
    "nanmedian": other(lambda x: jnp.nanmedian(jnp.where(x > 1, jnp.nan, x), axis=0), MATRIX),
    "nanpercentile": other(lambda x: jnp.nanpercentile(jnp.where(x > 1, jnp.nan, x), 30.0, axis=1), MATRIX),
    "quantile": differentiable(lambda x: jnp.quantile(x, jnp.array([0.1, 0.5]), axis=0), MATRIX),
    "percentile all": differentiable(lambda x: jnp.percentile(x, 25.0), MATRIX),
    "select": differentiable(lambda x: jnp.select([x < 0, x < 1], [x, x * 2], x * 3), MATRIX),
    "piecewise": differentiable(lambda x: jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]), MATRIX),
    "insert": differentiable(lambda x: jnp.insert(x, 3, 7.0, axis=0), MATRIX),
    "delete": differentiable(lambda x: jnp.delete(x, 3, axis=0), MATRIX),
    "setdiff1d": other(lambda x, y: jnp.setdiff1d(jnp.round(x * 2), jnp.round(y * 2), size=8), VECTOR, VECTOR),
    "intersect1d": other(lambda x, y: jnp.intersect1d(jnp.round(x * 2), jnp.round(y * 2), size=8), VECTOR, VECTOR),
    "isin": other(lambda x, y: jnp.isin(jnp.round(x * 2), jnp.round(y * 2)), MATRIX, VECTOR),
    "unique counts": other(
        lambda x: jnp.unique(jnp.round(x * 2), size=16, return_counts=True, return_inverse=True), VECTOR
    ),
    "vander": differentiable(lambda x: jnp.vander(x, 5), VECTOR),
    "kron": differentiable(lambda x, y: jnp.kron(x, y[:2, :2]), MATRIX, MATRIX),
    "cov": differentiable(lambda x: jnp.cov(x), MATRIX),
    "corrcoef": differentiable(lambda x: jnp.corrcoef(x, rowvar=False), MATRIX),
    "trapezoid": differentiable(lambda x: jnp.trapezoid(x, axis=0), MATRIX),
    "gradient": differentiable(lambda x: jnp.gradient(x, axis=0), MATRIX),
    "gradient both": differentiable(lambda x: jnp.gradient(x), MATRIX),
    "diff 2": differentiable(lambda x: jnp.diff(x, 2, axis=0), MATRIX),
    "ediff1d": differentiable(lambda x: jnp.ediff1d(x, to_begin=0.0), VECTOR),
    "cross": differentiable(lambda x: jnp.cross(x[:, :3], x[:, 3:6]), MATRIX),
    "rot90": differentiable(lambda x: jnp.rot90(x), MATRIX),
    "flip": differentiable(lambda x: jnp.flip(x), MATRIX),
    "roll both": differentiable(lambda x: jnp.roll(x, (3, 5), (0, 1)), MATRIX),
    "roll flat": differentiable(lambda x: jnp.roll(x, 7), MATRIX),
    "tril indices": differentiable(lambda x: x[jnp.tril_indices(16)], SQUARE),
    "diag embed": differentiable(lambda x: jnp.diag(x), VECTOR),
    "diagonal offset": differentiable(lambda x: jnp.diagonal(x, 1), MATRIX),
    "trace": differentiable(lambda x: jnp.trace(x), MATRIX),
    "packbits": other(lambda x: jnp.packbits(x > 0, axis=0), MATRIX),
    "unpackbits": other(lambda x: jnp.unpackbits((jnp.abs(x) * 50).astype(jnp.uint8), axis=1), MATRIX),
    "associative_scan": differentiable(lambda x: lax.associative_scan(lambda a, b: a * 0.5 + b, x, axis=0), MATRIX),
    "associative_scan reverse": differentiable(
        lambda x: lax.associative_scan(jnp.maximum, x, axis=1, reverse=True), MATRIX
    ),
    "cumlogsumexp": differentiable(lambda x: lax.cumlogsumexp(x, axis=0), MATRIX),
    "cumsum reverse": differentiable(lambda x: lax.cumsum(x, axis=0, reverse=True), MATRIX),
    "nancumsum": differentiable(lambda x: jnp.nancumsum(x, axis=1), MATRIX),
    "argsort": other(lambda x: jnp.argsort(x, axis=0), MATRIX),
    "lexsort": other(lambda x, y: jnp.lexsort((x, y)), VECTOR, VECTOR),
    "partition": other(lambda x: jnp.partition(x, 4, axis=0)[:4], MATRIX),
    "searchsorted sort": other(lambda x, y: jnp.searchsorted(jnp.sort(x), y, method="sort"), VECTOR, VECTOR),
    "top_k axis": other(lambda x: lax.top_k(x.T, 3), MATRIX),
    "nonzero": other(lambda x: jnp.nonzero(x > 0, size=16), MATRIX),
    "argwhere": other(lambda x: jnp.argwhere(x > 0, size=16), MATRIX),
    "compress": differentiable(lambda x: jnp.compress(jnp.arange(32) % 3 == 0, x, axis=0, size=8), MATRIX),
    "extract": other(lambda x: jnp.extract(x > 0, x, size=16), MATRIX),
    "place": differentiable(lambda x: jnp.where(jnp.arange(32)[:, None] % 2 == 0, x, 0), MATRIX),
    "take fill": differentiable(lambda x: jnp.take(x, jnp.array([0, 5, 40]), axis=0, mode="fill"), MATRIX),
    "take_along": differentiable(lambda x, y: jnp.take_along_axis(x, jnp.argsort(y, axis=0), axis=0), MATRIX, MATRIX),
    "put_along": other(
        lambda x, y: jnp.put_along_axis(x, jnp.argmax(y, axis=0, keepdims=True), 9.0, axis=0, inplace=False),
        MATRIX,
        MATRIX,
    ),
    "at add dup": differentiable(lambda x, y: x.at[jnp.array([1, 1, 5, 30])].add(y[:4]), MATRIX, MATRIX),
    "at max": differentiable(lambda x, y: x.at[::3].max(y[::3]), MATRIX, MATRIX),
    "at mul": other(lambda x, y: x.at[jnp.arange(32) % 7].multiply(y), MATRIX, MATRIX),
    "at set strided": differentiable(lambda x, y: x.at[1::2, ::3].set(y[1::2, ::3]), MATRIX, MATRIX),
    "segment_max": differentiable(lambda x: jax.ops.segment_max(x, jnp.arange(32) % 5, 5), MATRIX),
    "segment_sum sorted": differentiable(
        lambda x: jax.ops.segment_sum(x, jnp.arange(32) // 4, 8, indices_are_sorted=True), MATRIX
    ),
    "bincount weights": differentiable(lambda x: jnp.bincount(jnp.arange(64) % 9, weights=x, length=9), VECTOR),
    "repeat": differentiable(lambda x: jnp.repeat(x, 3, axis=0), MATRIX),
    "repeat array": differentiable(lambda x: jnp.repeat(x, jnp.arange(32) % 3, axis=0, total_repeat_length=24), MATRIX),
    "tile": differentiable(lambda x: jnp.tile(x, (2, 3)), MATRIX),
    "pad reflect": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="reflect"), MATRIX),
    "pad symmetric": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="symmetric"), MATRIX),
    "pad wrap": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="wrap"), MATRIX),
    "pad edge": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="edge"), MATRIX),
    "pad linear_ramp": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="linear_ramp"), MATRIX),
    "pad mean": differentiable(lambda x: jnp.pad(x, ((2, 3), (1, 1)), mode="mean"), MATRIX),
    "conv_transpose": differentiable(lambda x: lax.conv_transpose(x, jnp.ones((3, 3, 3, 4)), (2, 2), "SAME"), IMAGE),
    "conv dilated": differentiable(
        lambda x: lax.conv_general_dilated(
            x, jnp.ones((3, 3, 3, 4)), (1, 1), "SAME", rhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        IMAGE,
    ),
    "conv patches": differentiable(
        lambda x: lax.conv_general_dilated_patches(
            x, (3, 3), (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        IMAGE,
    ),
    "conv1d grouped": differentiable(
        lambda x: lax.conv_general_dilated(
            x, jnp.ones((4, 1, 16)), (1,), [(3, 0)], feature_group_count=16, dimension_numbers=("NWC", "WIO", "NWC")
        ),
        (2, 32, 16),
    ),
    "reduce_window cumprod": other(lambda x: lax.reduce_window(x, 1.0, lax.mul, (3, 1), (1, 1), "SAME"), MATRIX),
    "glu": differentiable(lambda x: jax.nn.glu(x), MATRIX),
    "one_hot loss": differentiable(
        lambda x: -jnp.mean(jnp.sum(jax.nn.one_hot(jnp.arange(32) % 16, 16) * jax.nn.log_softmax(x), -1)), MATRIX
    ),
    "standardize": differentiable(lambda x: jax.nn.standardize(x, axis=0), MATRIX),
    "dpa": differentiable(lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True), (2, 16, 4, 8)),
    "dpa window": differentiable(
        lambda x: jax.nn.dot_product_attention(x, x, x, local_window_size=(3, 0)), (2, 16, 4, 8)
    ),
    "scaled_dot gqa": differentiable(
        lambda x: jax.nn.dot_product_attention(x, x[:, :, :2], x[:, :, :2]), (2, 16, 4, 8)
    ),
    "sinkhorn like": other(
        lambda x: lax.fori_loop(0, 5, lambda i, v: jax.nn.softmax(jax.nn.softmax(v, 0), 1), x), MATRIX
    ),
    "soft dtw": differentiable(
        lambda x: lax.scan(lambda c, r: (jnp.minimum(c, jnp.roll(c, 1)) + r, c), jnp.zeros(16), x)[0], MATRIX
    ),
    "hessian diag": differentiable(lambda x: jnp.diagonal(jax.hessian(lambda v: jnp.sum(jnp.sin(v) * v[0]))(x)), (16,)),
    "jacfwd": differentiable(lambda x: jax.jacfwd(lambda v: jnp.tanh(v) @ jnp.ones((16, 4)))(x), (16,)),
    "jacrev": differentiable(lambda x: jax.jacrev(lambda v: jnp.cumsum(jnp.tanh(v)))(x), (16,)),
    "vmap while": other(
        lambda x: jax.vmap(lambda v: lax.while_loop(lambda s: s < 5.0, lambda s: s * 1.5 + 0.5, jnp.abs(v)))(x[:, 0]),
        MATRIX,
    ),
    "custom_root": other(
        lambda x: lax.custom_root(
            lambda v: v**3 - x,
            x,
            lambda f, g: lax.fori_loop(0, 8, lambda i, v: v - f(v) / (3 * v * v + 1e-3), g),
            lambda g, y: y / g(jnp.ones_like(y)),
        ),
        MATRIX,
    ),
    "map batch": differentiable(lambda x: lax.map(lambda r: jnp.sum(jnp.sort(r)[:4]), x, batch_size=8), MATRIX),
    "einsum 3": differentiable(lambda x, y: jnp.einsum("ij,kj,kl->il", x, y, y), MATRIX, MATRIX),
    "tensordot": differentiable(lambda x, y: jnp.tensordot(x, y, ((0,), (0,))), MATRIX, MATRIX),
    "vdot complex": differentiable(lambda x, y: jnp.vdot(x + 1j * y, y + 1j * x).real, MATRIX, MATRIX),
    "outer": differentiable(lambda x, y: jnp.outer(x, y), VECTOR, VECTOR),
    "apply_along_axis": differentiable(lambda x: jnp.apply_along_axis(lambda v: jnp.cumsum(v)[::2], 0, x), MATRIX),
    "ravel_multi": other(lambda x: jnp.unravel_index(jnp.argmax(x), x.shape), MATRIX),
    "argmax none": other(lambda x: jnp.argmax(x), MATRIX),
    "argmin nan": other(lambda x: jnp.nanargmin(x, axis=0), MATRIX),
    "ptp var": differentiable(lambda x: jnp.ptp(x, axis=0) + jnp.var(x, axis=0, ddof=1), MATRIX),
    "median axis tuple": differentiable(lambda x: jnp.median(x, axis=(0, 1)), IMAGE),
    "average weights": differentiable(lambda x: jnp.average(x, axis=0, weights=jnp.arange(32.0)), MATRIX),
    "nan_to_num": other(lambda x: jnp.nan_to_num(jnp.log(x)), MATRIX),
    "frexp": other(lambda x: jnp.frexp(x), MATRIX),
    "bitcast": other(lambda x: lax.bitcast_convert_type(x, jnp.uint8), MATRIX),
    "bitcast wide": other(
        lambda x: lax.bitcast_convert_type(x.astype(jnp.float16).reshape(32, 8, 2), jnp.int32), MATRIX
    ),
    "reduce_precision": differentiable(lambda x: lax.reduce_precision(x, 5, 3), MATRIX),
    "population_count": other(lambda x: lax.population_count((jnp.abs(x) * 99).astype(jnp.int32)).sum(0), MATRIX),
    "clz argsort stable": other(lambda x: jnp.argsort(jnp.round(x), stable=True, descending=True, axis=1), MATRIX),
    "array_split": differentiable(lambda x: jnp.array_split(x, 3, axis=0), MATRIX),
    "hsplit": differentiable(lambda x: jnp.hsplit(x, 4), MATRIX),
    "dstack": differentiable(lambda x, y: jnp.dstack([x, y]), MATRIX, MATRIX),
    "column_stack": differentiable(lambda x, y: jnp.column_stack([x, y]), VECTOR, VECTOR),
    "interleave": differentiable(lambda x, y: jnp.stack([x, y], 1).reshape(-1, 16), MATRIX, MATRIX),
    "resize np": differentiable(lambda x: jnp.resize(x, (10, 20)), MATRIX),
    "swap reshape F": differentiable(lambda x: x.reshape(16, 32, order="F"), MATRIX),
    "unstack": differentiable(lambda x: jnp.unstack(x, axis=1)[3], MATRIX),
    "moveaxis": differentiable(lambda x: jnp.moveaxis(x, 0, -1), IMAGE),
    "meshgrid": differentiable(lambda x, y: jnp.meshgrid(x, y), VECTOR, VECTOR),
    "fill_diagonal": differentiable(lambda x: jnp.fill_diagonal(x, 3.0, inplace=False), SQUARE),
    "tri mask": differentiable(lambda x: jnp.tril(x, -1) + jnp.triu(x, 2), SQUARE),
    "polymul": differentiable(lambda x, y: jnp.polymul(x[:8], y[:5]), VECTOR, VECTOR),
    "polydiv roots": other(lambda x: jnp.abs(jnp.roots(x[:6], strip_zeros=False)).sum(), VECTOR),
}
