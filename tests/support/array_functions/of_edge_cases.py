"""Operations with unusual attributes: no dimensions, negative padding, indices out of bounds, one or no element."""

# The stubs in typings/ have the functions that sdy uses, not these.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false, reportUnknownVariableType=false

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from array_functions.array_function import MATRIX, TENSOR, ArrayFunction, differentiable, other

key = jax.random.key(0)

convolution = partial(lax.conv_general_dilated, dimension_numbers=("NWC", "WIO", "NWC"))

FUNCTIONS: dict[str, ArrayFunction] = {
    "reduce no dims": differentiable(lambda x: lax.reduce(x, 0.0, lax.add, ()), MATRIX),
    "reduce_sum empty axes": differentiable(lambda x: jnp.sum(x, axis=()), MATRIX),
    "max empty axes": differentiable(lambda x: jnp.max(x, axis=()), MATRIX),
    "transpose identity": differentiable(lambda x: jnp.transpose(x, (0, 1)), MATRIX),
    "dot outer": differentiable(lambda x, y: lax.dot_general(x, y, (((), ()), ((), ()))), MATRIX, MATRIX),
    "dot all batch": differentiable(lambda x, y: lax.dot_general(x, y, (((), ()), ((0, 1), (0, 1)))), MATRIX, MATRIX),
    "dot all contracted": differentiable(
        lambda x, y: lax.dot_general(x, y, (((0, 1), (0, 1)), ((), ()))), MATRIX, MATRIX
    ),
    "dot crossed": differentiable(lambda x, y: lax.dot_general(x, y.T, (((0,), (1,)), ((1,), (0,)))), MATRIX, MATRIX),
    "conv no spatial": differentiable(
        lambda x, y: lax.conv_general_dilated(x, y, (), [], dimension_numbers=("NC", "OI", "NC")), MATRIX, MATRIX
    ),
    "conv 1x1": differentiable(
        lambda x, y: convolution(x, y, (1,), "SAME"),
        TENSOR,
        (1, 24, 8),
    ),
    "conv batch group": differentiable(
        lambda x, y: convolution(x, y, (1,), "SAME", batch_group_count=4),
        TENSOR,
        (3, 24, 8),
    ),
    "conv batch group 8": differentiable(
        lambda x, y: convolution(x, y, (1,), "SAME", batch_group_count=8),
        TENSOR,
        (3, 24, 8),
    ),
    "conv feature group": differentiable(
        lambda x, y: convolution(x, y, (1,), "SAME", feature_group_count=8),
        TENSOR,
        (4, 3, 16),
    ),
    "conv lhs dil": differentiable(
        lambda x, y: convolution(x, y, (1,), [(1, 1)], lhs_dilation=(3,)),
        TENSOR,
        (3, 24, 8),
    ),
    "conv neg pad": differentiable(
        lambda x, y: convolution(x, y, (1,), [(-2, -1)]),
        TENSOR,
        (3, 24, 8),
    ),
    "conv big pad": differentiable(
        lambda x, y: convolution(x, y, (2,), [(9, 7)]),
        TENSOR,
        (3, 24, 8),
    ),
    "conv window all": differentiable(
        lambda x, y: convolution(x, y, (1,), "VALID"),
        TENSOR,
        (16, 24, 8),
    ),
    "conv rhs dil": differentiable(
        lambda x, y: convolution(x, y, (1,), "SAME", rhs_dilation=(5,)),
        TENSOR,
        (3, 24, 8),
    ),
    "conv 0 batch": differentiable(
        lambda x, y: convolution(x[:0], y, (1,), "SAME").sum(),
        TENSOR,
        (3, 24, 8),
    ),
    "rw identity": differentiable(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (1, 1), "VALID"), MATRIX),
    "rw all": differentiable(lambda x: lax.reduce_window(x, 0.0, lax.add, (32, 16), (1, 1), "VALID"), MATRIX),
    "rw stride>window": differentiable(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (5, 3), "VALID"), MATRIX),
    "rw dil": other(
        lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (3, 1), (1, 1), [(2, 1), (0, 0)], base_dilation=(2, 1), window_dilation=(3, 1)
        ),
        MATRIX,
    ),
    "rw big pad": differentiable(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (2, 1), [(9, 8), (0, 0)]), MATRIX
    ),
    "rw min": differentiable(lambda x: lax.reduce_window(x, jnp.inf, lax.min, (4, 2), (4, 2), "VALID"), MATRIX),
    "rw pair": other(
        lambda x: lax.reduce_window(
            (x, x * 2), (0.0, 0.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (3, 1), (1, 1), "SAME"
        ),
        MATRIX,
    ),
    "rw init 1": other(lambda x: lax.reduce_window(x, 1.0, lax.add, (3, 1), (1, 1), "SAME"), MATRIX),
    "reduce init 1": other(lambda x: lax.reduce(x, 1.0, lax.add, (0,)), MATRIX),
    "reduce pair": other(
        lambda x: lax.reduce((x, x * 2), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), MATRIX
    ),
    "reduce custom": other(lambda x: lax.reduce(x, 0.0, lambda a, b: jnp.sqrt(a * a + b * b), (0,)), MATRIX),
    "reduce sub": other(lambda x: lax.reduce(jnp.abs(x), 0.0, lambda a, b: a + b * 1.0, (0, 1)), MATRIX),
    "reduce and/or": other(
        lambda x: (
            lax.reduce_and((x * 9).astype(jnp.int32), (0,)),
            lax.reduce_or((x * 9).astype(jnp.int32), (1,)),
            lax.reduce_xor((x * 9).astype(jnp.int32), (0, 1)),
        ),
        MATRIX,
    ),
    "reduce_prod int": other(lambda x: jnp.prod((jnp.abs(x)).astype(jnp.int32) + 1, axis=0), MATRIX),
    "argmin int ties": other(lambda x: jnp.argmin((x).astype(jnp.int32), axis=0), MATRIX),
    "argmax nan": other(lambda x: jnp.argmax(jnp.where(x > 1, jnp.nan, x), axis=0), MATRIX),
    "max nan": other(
        lambda x: (jnp.max(jnp.where(x > 2, jnp.nan, x), 0), jnp.min(jnp.where(x > 2, jnp.nan, x), 1)), MATRIX
    ),
    "inf sums": other(lambda x: jnp.sum(jnp.where(x > 2.2, jnp.inf, x), 0), MATRIX),
    "neg zero": other(lambda x: jnp.signbit(jnp.max(jnp.where(x > 0, -0.0, x * 0 - 1), 0)), MATRIX),
    "pad scalar": differentiable(lambda x: lax.pad(x[0, 0], 0.0, []), MATRIX),
    "pad neg both": differentiable(lambda x: lax.pad(x, 0.0, [(-3, -4, 0), (-1, 2, 0)]), MATRIX),
    "pad interior": differentiable(lambda x: lax.pad(x, 1.0, [(1, 2, 2), (0, 0, 1)]), MATRIX),
    "pad neg interior": differentiable(lambda x: lax.pad(x, 1.0, [(-3, -2, 1), (0, 0, 0)]), MATRIX),
    "pad to empty": differentiable(lambda x: lax.pad(x, 1.0, [(-16, -16, 0), (0, 0, 0)]).sum() + x.sum(), MATRIX),
    "pad huge": differentiable(lambda x: lax.pad(x, 1.0, [(100, 3, 0), (0, 0, 0)]), MATRIX),
    "pad value dyn": differentiable(lambda x: lax.pad(x, x[3, 3], [(1, 2, 0), (2, 1, 0)]), MATRIX),
    "slice last": differentiable(lambda x: lax.slice(x, (31, 15), (32, 16)), MATRIX),
    "slice stride big": differentiable(lambda x: lax.slice(x, (3, 0), (32, 16), (31, 20)), MATRIX),
    "slice stride 7": differentiable(lambda x: lax.slice(x, (2, 1), (31, 16), (7, 3)), MATRIX),
    "slice one": differentiable(lambda x: x[5:6, 3:4], MATRIX),
    "slice empty sum": differentiable(lambda x: x[5:5].sum() + x.sum(), MATRIX),
    "concat one": differentiable(lambda x: lax.concatenate([x], 0), MATRIX),
    "concat many": differentiable(lambda x: lax.concatenate([x[:1], x[3:5], x[30:], x[:0], x[7:8]], 0), MATRIX),
    "concat same": differentiable(lambda x: jnp.concatenate([x] * 3, 1), MATRIX),
    "dus whole": differentiable(lambda x, y: lax.dynamic_update_slice(x, y, (0, 0)), MATRIX, MATRIX),
    "dus clamp": differentiable(
        lambda x, y: lax.dynamic_update_slice(x, y[:4], (jnp.int32(100), jnp.int32(-5))), MATRIX, MATRIX
    ),
    "ds clamp": differentiable(lambda x: lax.dynamic_slice(x, (jnp.int32(100), jnp.int32(-5)), (4, 4)), MATRIX),
    "ds whole": differentiable(lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0]), jnp.int32(3)), (32, 16)), MATRIX),
    "ds scalar": differentiable(lambda x: lax.dynamic_slice(x[0, 0], (), ()), MATRIX),
    "dus scalar": differentiable(lambda x: lax.dynamic_update_slice(x[0, 0], x[1, 1], ()), MATRIX),
    "dus one": differentiable(
        lambda x: lax.dynamic_update_slice(x, x[3:4, 3:4], (jnp.argmax(x[:, 0]), jnp.argmax(x[0]))), MATRIX
    ),
    "gather oob clip": differentiable(lambda x: x.at[jnp.array([[-40], [50]])].get(mode="clip"), MATRIX),
    "gather neg": differentiable(lambda x: x[jnp.array([-1, -32, 5])], MATRIX),
    "gather 0 idx": differentiable(lambda x: x[jnp.zeros((3, 0), int)].sum() + x.sum(), MATRIX),
    "gather scalar idx": differentiable(lambda x: x[jnp.argmax(x[:, 0])], MATRIX),
    "gather both": differentiable(lambda x: x[jnp.argmax(x[:, 0]), jnp.argmax(x[0])], MATRIX),
    "gather window": differentiable(
        lambda x: lax.gather(x, jnp.array([[1, 2], [28, 14]]), lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (4, 3)),
        MATRIX,
    ),
    "gather batch dims": differentiable(
        lambda x: jnp.take_along_axis(x, (jnp.arange(32 * 5).reshape(32, 5) * 7) % 16, 1), MATRIX
    ),
    "gather promise": differentiable(
        lambda x: x.at[jnp.arange(0, 32, 5)].get(
            mode="promise_in_bounds", unique_indices=True, indices_are_sorted=True
        ),
        MATRIX,
    ),
    "gather transposed": differentiable(
        lambda x: lax.gather(x, jnp.array([[1], [5]]), lax.GatherDimensionNumbers((0,), (1,), (1,)), (32, 1)), MATRIX
    ),
    "scatter scalar upd": differentiable(lambda x: x.at[3, 5].add(2.0), MATRIX),
    "scatter scalar idx arr": differentiable(lambda x: x.at[jnp.array(3)].set(0.0), MATRIX),
    "scatter oob": differentiable(lambda x: x.at[jnp.array([40, -40, 3])].add(1.0), MATRIX),
    "scatter clip": differentiable(lambda x: x.at[jnp.array([40, 3])].add(1.0, mode="clip"), MATRIX),
    "scatter window": differentiable(
        lambda x: lax.scatter_add(
            x, jnp.array([[1, 2], [28, 13]]), jnp.ones((2, 4, 3)), lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
        ),
        MATRIX,
    ),
    "scatter window oob": differentiable(
        lambda x: lax.scatter_add(
            x, jnp.array([[1, 2], [30, 14]]), jnp.ones((2, 4, 3)), lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
        ),
        MATRIX,
    ),
    "scatter sub": differentiable(lambda x, y: x.at[jnp.array([1, 1, 2])].subtract(y[:3]), MATRIX, MATRIX),
    "scatter sorted unique": differentiable(
        lambda x, y: x.at[jnp.array([1, 4, 20])].set(y[:3], unique_indices=True, indices_are_sorted=True),
        MATRIX,
        MATRIX,
    ),
    "scatter empty upd dim": differentiable(lambda x, y: x.at[:, :0].set(y[:, :0]), MATRIX, MATRIX),
    "scatter all idx": differentiable(
        lambda x, y: x.at[jnp.arange(32)[:, None], jnp.arange(16)[None]].add(y), MATRIX, MATRIX
    ),
    "scatter perm": differentiable(lambda x, y: x.at[(jnp.arange(32) * 5) % 32].set(y), MATRIX, MATRIX),
    "scatter cols perm": differentiable(lambda x, y: x.at[:, (jnp.arange(16) * 5) % 16].set(y), MATRIX, MATRIX),
    "scatter int": other(lambda x: jnp.zeros(16, jnp.int32).at[(jnp.abs(x) * 7).astype(jnp.int32) % 16].add(1), MATRIX),
    "scatter bool": other(lambda x: jnp.zeros(16, bool).at[(jnp.abs(x) * 7).astype(jnp.int32) % 16].set(True), MATRIX),
    "scatter min int": other(
        lambda x: jnp.full(16, 99).at[(jnp.abs(x) * 7).astype(jnp.int32) % 16].min(jnp.arange(32)[:, None]), MATRIX
    ),
    "sort empty": differentiable(lambda x: jnp.sort(x[:, :0], 1).sum() + x.sum(), MATRIX),
    "sort 1": differentiable(lambda x: jnp.sort(x[:, :1], 1), MATRIX),
    "sort multi": other(lambda x: lax.sort((jnp.round(x), x, -x), dimension=0, num_keys=2), MATRIX),
    "sort desc": differentiable(lambda x: -jnp.sort(-x, 0), MATRIX),
    "sort nan": other(lambda x: jnp.sort(jnp.where(x > 1, jnp.nan, x), 0), MATRIX),
    "top_k all": other(lambda x: lax.top_k(x, 16), MATRIX),
    "top_k 1": other(lambda x: lax.top_k(x.T, 1), MATRIX),
    "approx max": other(lambda x: lax.approx_max_k(x, 4), MATRIX),
    "while no carry": differentiable(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0) + x, MATRIX),
    "while unused": differentiable(lambda x: lax.fori_loop(0, 3, lambda i, c: (c[0] * 1.1, c[1]), (x, x * 2)), MATRIX),
    "scan len 0": differentiable(
        lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(16), x[:0])[0] + x.sum(0), MATRIX
    ),
    "scan len 1": differentiable(lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(16), x[:1])[1] + x, MATRIX),
    "scan tuple": differentiable(
        lambda x, y: lax.scan(lambda c, v: ((c[0] + v[0], c[1] * v[1]), c), (jnp.zeros(16), jnp.ones(16)), (x, y)),
        MATRIX,
        MATRIX,
    ),
    "scan unroll": differentiable(lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(16), x, unroll=4)[1], MATRIX),
    "cond same": differentiable(lambda x: lax.cond(True, lambda v: v, lambda v: v * 2, x), MATRIX),
    "case 1": differentiable(lambda x: lax.switch(5, [lambda v: v * 2], x), MATRIX),
    "cond pred vec": differentiable(
        lambda x: jax.vmap(lambda v: lax.cond(v.sum() > 0, lambda u: u * 2, lambda u: u - 1, v))(x), MATRIX
    ),
    "cond none": differentiable(lambda x: lax.cond(x[0, 0] > 0, lambda: x.sum(), lambda: x.max()), MATRIX),
    "nested while": other(
        lambda x: lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(0, i + 1, lambda j, d: d * 1.1 + x, c), x), MATRIX
    ),
    "fft len1": differentiable(lambda x: jnp.fft.fft(x[:, :1]).real, MATRIX),
    "ifft2": other(lambda x: jnp.fft.ifft2(x + 0j).real, MATRIX),
    "irfft odd": differentiable(lambda x: jnp.fft.irfft(x + 0j, n=15, axis=0), MATRIX),
    "rfft odd": differentiable(lambda x: jnp.abs(jnp.fft.rfft(x[:31], axis=0)), MATRIX),
    "chol 1x1": differentiable(lambda x: jnp.linalg.cholesky(jnp.abs(x)[:, :1, None] + 1), MATRIX),
    "tri solve right": differentiable(
        lambda x: lax.linalg.triangular_solve(jnp.tril(x[:16]) + 16 * jnp.eye(16), x, left_side=False, lower=True),
        MATRIX,
    ),
    "tri solve T": differentiable(
        lambda x: lax.linalg.triangular_solve(
            jnp.tril(x[:16]) + 16 * jnp.eye(16), x.T, left_side=True, lower=True, transpose_a=True
        ),
        MATRIX,
    ),
    "tri unit diag": differentiable(
        lambda x: lax.linalg.triangular_solve(
            jnp.tril(x[:16]) / 9, x.T, left_side=True, lower=True, unit_diagonal=True
        ),
        MATRIX,
    ),
    "iota expand": differentiable(lambda x: x + lax.broadcasted_iota(jnp.float32, (32, 16), 1), MATRIX),
    "broadcast dims": differentiable(lambda x: lax.broadcast_in_dim(x, (32, 4, 16), (0, 2)), MATRIX),
    "broadcast 1": differentiable(lambda x: jnp.broadcast_to(x[:, :1], (32, 16)), MATRIX),
    "reshape to scalar": differentiable(lambda x: x[:1, :1].reshape(()), MATRIX),
    "reshape ones": differentiable(lambda x: x.reshape(1, 32, 1, 16, 1), MATRIX),
    "clamp scalar": other(lambda x: lax.clamp(x[0, 0], x, x[0, 0] + 1), MATRIX),
    "select n": differentiable(lambda x: lax.select_n((jnp.abs(x)).astype(jnp.int32) % 3, x, x * 2, x * 3), MATRIX),
    "select scalar pred": differentiable(lambda x: lax.select(x[0, 0] > 0, x, x * 2), MATRIX),
    "convert chain": other(lambda x: x.astype(jnp.int8).astype(jnp.float16).astype(bool).astype(jnp.float32), MATRIX),
    "rng bits": differentiable(lambda x: jax.random.bits(key, (32, 16), jnp.uint8).astype(jnp.float32) + x, MATRIX),
    "rem/atan2/nextafter": other(
        lambda x, y: (jnp.remainder(x, jnp.abs(y) + 0.1), jnp.arctan2(x, y), jnp.nextafter(x, y)), MATRIX, MATRIX
    ),
    "shifts": other(
        lambda x: (
            lax.shift_left((x * 9).astype(jnp.int32), 2),
            lax.shift_right_arithmetic((x * 9).astype(jnp.int32), 1),
            lax.shift_right_logical((x * 9).astype(jnp.int32), 1),
        ),
        MATRIX,
    ),
    "cum empty": differentiable(lambda x: jnp.cumsum(x[:0], 0).sum() + x.sum(), MATRIX),
    "cum 1": differentiable(lambda x: lax.cumsum(x[:1], 0), MATRIX),
    "cummin rev": differentiable(lambda x: lax.cummin(x, 0, reverse=True), MATRIX),
    "reverse both": differentiable(lambda x: lax.rev(x, (0, 1)), MATRIX),
    "reverse none": differentiable(lambda x: lax.rev(x, ()), MATRIX),
    "custom jvp clip": differentiable(lambda x: jnp.clip(x, -1, 1) + jnp.sinc(x) + jnp.logaddexp(x, 1.0), MATRIX),
    "bitcast to smaller": other(lambda x: lax.bitcast_convert_type(x, jnp.int16), MATRIX),
    "bitcast larger": other(
        lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int16), jnp.float32), MATRIX
    ),
    "complex ops": differentiable(lambda x, y: (lax.complex(x, y) * lax.conj(lax.complex(x, y))).real, MATRIX, MATRIX),
    "hlo real/imag": differentiable(lambda x: jnp.angle(lax.complex(x, x * 2)) + jnp.real(jnp.exp(1j * x)), MATRIX),
    "ragged": differentiable(
        lambda x, w: lax.ragged_dot(x, w, jnp.array([3, 0, 10, 1, 2, 8, 0, 8], jnp.int32)), MATRIX, (8, 16, 24)
    ),
    "einsum diag": differentiable(lambda x: jnp.einsum("ii->i", x[:16]), MATRIX),
    "einsum trace batch": differentiable(lambda x: jnp.einsum("bii->b", x[:, :16, :16]), TENSOR),
    "einsum bcast": differentiable(lambda x, y: jnp.einsum("...ij,jk->...ik", x, y[:16]), (8, 4, 16), MATRIX),
}
