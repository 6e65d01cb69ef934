"""Small JAX programs that together cover all operations that JAX lowers to, as MLIR text."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

from sdy.type_helpers import Function

_LAX: Any = import_module("jax._src.lax.lax")
_PARALLEL: Any = import_module("jax._src.lax.parallel")


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def u32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.uint32)


def c64(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.complex64)


def boolean(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.bool_)


@dataclass(frozen=True)
class Program:
    """A function, the argument shapes to lower it for, whose sizes may be symbols, and the platform."""

    function: Function[Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    platform: str = "cpu"


def symbolic(*shapes: tuple[str, Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Return arguments that share symbolic sizes: `symbolic(("b, 4", jnp.float32))`."""
    scope = export.SymbolicScope()
    return tuple(jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), dtype) for shape, dtype in shapes)


def collective(function: Function[Any]) -> Callable[..., Any]:
    """Return the function mapped over the four devices of axis `x`, which lowering looks up."""

    def mapped(x: jax.Array) -> jax.Array:
        mesh = Mesh(np.array(jax.devices()[:4]), ("x",), axis_types=(AxisType.Auto,))
        return jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)

    return mapped


def scaled_sine(x: jax.Array, *, scale: float) -> jax.Array:
    return jnp.sin(x) * scale


PROGRAMS: dict[str, Program] = {
    "arithmetic": Program(lambda x, y: (x + y) * (x - y) / y % x**y, (f32(4, 8), f32(4, 8))),
    "unary": Program(
        lambda x: (
            [f(x) for f in (jnp.abs, jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sin, jnp.cos, jnp.tan, jnp.tanh)]
            + [
                f(x)
                for f in (
                    jnp.sqrt,
                    lax.rsqrt,
                    jnp.cbrt,
                    jnp.ceil,
                    jnp.floor,
                    jnp.round,
                    jnp.sign,
                    lax.logistic,
                    lax.neg,
                )
            ]
            + [lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), jnp.isfinite(x), lax.reduce_precision(x, 5, 10)]
        ),
        (f32(4, 8),),
    ),
    "accuracy": Program(lambda x: lax.exp(x, accuracy=lax.Tolerance(atol=1e-3, rtol=1e-5, ulps=2)), (f32(4),)),
    "special": Program(
        lambda x, y: (
            [f(x) for f in (lax.erf, lax.erfc, lax.erf_inv, lax.lgamma, lax.digamma, lax.bessel_i1e, lax.square)]
            + [f(x) for f in (lax.asin, lax.acos, lax.atan, lax.asinh, lax.acosh, lax.atanh, lax.sinh, lax.cosh)]
            + [lax.atan2(x, y), lax.nextafter(x, y), lax.zeta(x, y), lax.polygamma(x, y), lax.igamma(x, y)]
        ),
        (f32(4), f32(4)),
    ),
    "integers": Program(
        lambda x, y: (
            x & y,
            x | y,
            x ^ y,
            ~x,
            x << y,
            x >> y,
            lax.shift_right_logical(x, y),
            lax.clz(x),
            x // y,
            lax.population_count(x),
            lax.mulhi(x, y),
        ),
        (i32(4), i32(4)),
    ),
    "booleans": Program(
        lambda x, y: (x & y, x | ~y, x ^ y, jnp.any(x), jnp.all(x, axis=0)), (boolean(4, 3), boolean(4, 3))
    ),
    "comparisons": Program(
        lambda x, y, i: (x < y, x <= y, x > y, x >= y, x == y, x != y, i < 3, i.astype(jnp.uint32) < 3),
        (f32(4), f32(4), i32(4)),
    ),
    "complex numbers": Program(
        lambda x, y: (lax.complex(x, y).conj(), jnp.abs(lax.complex(x, y)), lax.complex(x, y).real * y, 1j * x),
        (f32(4), f32(4)),
    ),
    "complex functions": Program(lambda z: (z.imag, jnp.exp(z), z * (1 + 2j), jnp.angle(z)), (c64(4, 2),)),
    "conversions": Program(
        lambda x, i: (
            x.astype(jnp.bfloat16),
            x.astype(jnp.int8),
            i.astype(jnp.float16),
            x.astype(jnp.float8_e4m3fn),
            lax.bitcast_convert_type(x, jnp.uint32),
            lax.bitcast_convert_type(x, jnp.uint8),
            i.astype(jnp.bool_),
        ),
        (f32(4), i32(4)),
    ),
    "select and clamp": Program(
        lambda p, x, y: (jnp.where(p, x, y), jnp.clip(x, -1, 1), lax.clamp(x, y, x), lax.select_n(p, x, y)),
        (boolean(4, 2), f32(4, 2), f32(4, 2)),
    ),
    "shapes": Program(
        lambda x: (
            x.reshape(2, 16),
            x.T,
            x[:, None, :],
            jnp.broadcast_to(x, (3, 4, 8)),
            jnp.flip(x, 1),
            x.ravel()[::2],
        ),
        (f32(4, 8),),
    ),
    "iota": Program(
        lambda x: x + jnp.arange(8) + jnp.eye(4, 8) + lax.broadcasted_iota(jnp.int32, (4, 8), 0), (f32(4, 8),)
    ),
    "constants": Program(
        lambda x: (
            x + np.linspace(0, 1, 4, dtype=np.float32),
            np.arange(300),
            np.array([1 + 2j, 3]),
            np.float32(np.nan),
            np.array([True, False]),
            np.zeros((0, 2)),
            np.arange(200.0),
            np.uint8(255),
            jnp.bfloat16(1.5),
        ),
        (f32(4),),
    ),
    "slices": Program(
        lambda x, i: (x[1:3, ::3], lax.dynamic_slice(x, (i, 0), (2, 8)), lax.dynamic_update_slice(x, x[:2], (i, i))),
        (f32(4, 8), i32()),
    ),
    "pad and concatenate": Program(
        lambda x, y: (
            jnp.pad(x, ((1, 2), (0, 0))),
            lax.pad(x, 0.0, ((0, -1, 1), (2, 0, 0))),
            jnp.concatenate([x, y, x], 1),
        ),
        (f32(4, 8), f32(4, 2)),
    ),
    "dots": Program(
        lambda x, y: (
            x @ y,
            jnp.einsum("bij,bjk->bik", x, y),
            jnp.dot(x, y, precision="highest"),
            jnp.tensordot(x, y, 0),
        ),
        (f32(3, 4, 5), f32(3, 5, 6)),
    ),
    "dot algorithm": Program(
        lambda x, y: (jnp.dot(x, y, precision=lax.DotAlgorithmPreset.BF16_BF16_F32), jnp.vdot(x, x)),
        (f32(4, 4), f32(4, 4)),
    ),
    "ragged dot": Program(lax.ragged_dot, (f32(8, 4), f32(3, 4, 5), i32(3))),
    "reductions": Program(
        lambda x: (x.sum(), x.max(1), x.min(0), x.prod((0, 1)), x.mean(), jnp.argmax(x, 1), jnp.argmin(x), x.var()),
        (f32(4, 8),),
    ),
    "reduction with a body": Program(
        lambda x, y: lax.reduce((x, y), (0.0, 1.0), lambda a, b: (a[0] + b[0] * a[1], a[1]), (1,)),
        (f32(4, 8), f32(4, 8)),
    ),
    "cumulative": Program(lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x), lax.cummax(x, reverse=True)), (f32(4, 8),)),
    "associative scan": Program(
        lambda x: lax.associative_scan(jnp.add, x),
        (
            f32(
                8,
            ),
        ),
    ),
    "pooling": Program(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), (f32(2, 8, 8, 3),)
    ),
    "pooling gradient": Program(
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()),
        (f32(2, 8, 8, 3),),
    ),
    "sorting": Program(lambda x, i: (jnp.sort(x), lax.sort((x, i), num_keys=2), jnp.argsort(i)), (f32(8), i32(8))),
    "top k": Program(lambda x: (lax.top_k(x, 3), lax.approx_max_k(x, 2)), (f32(4, 16),)),
    "gather": Program(
        lambda x, i: (x[i], x[i, 0], jnp.take_along_axis(x, i[:, None], 1), x.at[i].get(mode="fill")),
        (f32(4, 8), i32(4)),
    ),
    "scatter": Program(
        lambda x, i, y: (x.at[i].add(y), x.at[i].set(y), x.at[i].mul(y, unique_indices=True), x.at[i].max(y)),
        (f32(8, 4), i32(3), f32(3, 4)),
    ),
    "batched gather": Program(jax.vmap(lambda x, i: x[i]), (f32(3, 8, 2), i32(3, 4))),
    "convolution": Program(
        lambda x, k: lax.conv_general_dilated(x, k, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (f32(2, 8, 8, 3), f32(3, 3, 3, 5)),
    ),
    "convolution gradient": Program(
        jax.grad(lambda k, x: lax.conv_general_dilated(x, k, (2, 2), [(1, 1), (0, 2)], precision="high").sum()),
        (f32(5, 3, 3, 3), f32(2, 3, 8, 8)),
    ),
    "grouped convolution": Program(
        lambda x, k: lax.conv_general_dilated(
            x, k, (1,), [(2, 2)], (2,), (3,), feature_group_count=2, dimension_numbers=("NCW", "OIW", "NCW")
        ),
        (f32(2, 4, 9), f32(6, 2, 3)),
    ),
    "while": Program(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)), (f32(4),)),
    "scan": Program(lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x), (f32(5, 4),)),
    "fori": Program(lambda x: lax.fori_loop(0, 5, lambda i, y: y + x[i], x[0]), (f32(5, 4),)),
    "cond": Program(lambda p, x: lax.cond(p, jnp.sin, lambda y: y * 2, x), (boolean(), f32(4))),
    "switch": Program(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), (i32(), f32(4))),
    "barrier": Program(lambda x, y: lax.optimization_barrier((x, y)), (f32(4), i32())),
    "calls": Program(lambda x: jax.jit(jnp.sin)(x) + jax.checkpoint(jnp.cos)(x), (f32(4),)),
    "random": Program(lambda k: (jax.random.normal(k, (4,)), jax.random.randint(k, (3,), 0, 9)), (u32(2),)),
    "random bits": Program(lambda k: lax.rng_bit_generator(k, (4, 2)), (u32(4),)),
    "uniform": Program(lambda x: lax.rng_uniform(0.0, x, (4, 3)), (f32(),)),
    "fft": Program(lambda x, z: (jnp.fft.rfft(x), jnp.fft.ifft2(z), jnp.fft.irfft(z)), (f32(4, 8), c64(4, 8))),
    "linear algebra": Program(
        lambda x, y: (
            jnp.linalg.cholesky(x),
            lax.logistic(x),
            jax.scipy.linalg.solve_triangular(x, y, lower=True, trans=1),
        ),
        (f32(4, 4), f32(4, 2)),
    ),
    "custom calls": Program(lambda x: (jnp.linalg.qr(x), jnp.linalg.eigh(x), jnp.linalg.svd(x)), (f32(4, 4),)),
    "callback": Program(lambda x: (jax.debug.print("{}", x), jax.pure_callback(np.sin, x, x))[1], (f32(4),)),
    "layer norm gradient": Program(
        jax.grad(lambda x: jnp.sum(jnp.square((x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True))))),
        (f32(4, 8),),
    ),
    "attention": Program(
        lambda q, k, v: jax.nn.softmax(jnp.einsum("btd,bsd->bts", q, k)) @ v, (f32(2, 8, 4), f32(2, 8, 4), f32(2, 8, 4))
    ),
    "cross entropy gradient": Program(
        jax.grad(lambda x, i: -jnp.take_along_axis(jax.nn.log_softmax(x), i[:, None], 1).mean()), (f32(8, 10), i32(8))
    ),
    "vmapped loop": Program(jax.vmap(lambda n: lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)), (i32(4),)),
    "psum": Program(collective(lambda x: lax.psum(x, "x")), (f32(8, 4),)),
    "pmax": Program(collective(lambda x: lax.pmax(x, "x")), (f32(8, 4),)),
    "all gather": Program(collective(lambda x: lax.all_gather(x, "x", tiled=True)[:2]), (f32(8, 4),)),
    "reduce scatter": Program(
        collective(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)), (f32(8, 4),)
    ),
    "all to all": Program(collective(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True)), (f32(8, 4),)),
    "permute": Program(collective(lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3)])), (f32(8, 4),)),
    "broadcast from one device": Program(collective(lambda x: lax.pbroadcast(x, "x", 1)), (f32(8, 4),), "cuda"),
    "send and receive": Program(
        collective(
            lambda x: lax.precv(lax.psend(x, "x", [(0, 1)]), jax.ShapeDtypeStruct((2, 4), jnp.float32), "x", [(0, 1)])
        ),
        (f32(8, 4),),
        "cuda",
    ),
    "asynchronous gather": Program(
        collective(lambda x: _PARALLEL.all_gather_start(x, "x", tiled=True).done()[:2]), (f32(8, 4),)
    ),
    "tokens": Program(lambda x: _LAX.after_all(lax.create_token(x), lax.create_token(x)), (f32(4),)),
    "composite": Program(
        lambda x: lax.composite(scaled_sine, "my.scaled_sine", version=2)(x, scale=3.0),
        (f32(4),),
    ),
    "ragged dot on a TPU": Program(lax.ragged_dot, (f32(8, 4), f32(3, 4, 5), i32(3)), "tpu"),
    "linear algebra on a TPU": Program(
        lambda x, y, z: (
            jnp.linalg.cholesky(x),
            lax.linalg.triangular_solve(y, z, left_side=True, conjugate_a=True),
            jax.scipy.linalg.solve_triangular(y, z, lower=True, trans=2),
        ),
        (f32(4, 4), c64(4, 4), c64(4, 2)),
        "tpu",
    ),
    "pooling on a TPU": Program(
        jax.grad(lambda x: (lax.cummax(x, 1) + lax.cumlogsumexp(x) + jnp.cumsum(x)[3]).sum()), (f32(4, 8),), "tpu"
    ),
    "symbolic shapes": Program(
        lambda x: (
            x.reshape(-1),
            jnp.broadcast_to(x.sum(0), (x.shape[0], 4)),
            jnp.arange(x.shape[0]),
            jnp.pad(x, ((0, x.shape[0]), (0, 0))),
            x[1:, :],
        ),
        symbolic(("b, 4", jnp.float32)),
    ),
    "symbolic gather and slice": Program(
        lambda x, i: (x[i], lax.dynamic_slice_in_dim(x, i[0], x.shape[0] - 1), jnp.take(x, i, 1)),
        symbolic(("b, 4", jnp.float32), ("3", jnp.int32)),
    ),
    "symbolic convolution": Program(
        lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME"),
        symbolic(("1, 3, h, w", jnp.float32), ("5, 3, 3, 3", jnp.float32)),
    ),
    "axis index": Program(collective(lambda x: x + lax.axis_index("x")), (f32(8, 4),)),
}


class Lowered(NamedTuple):
    """A module as MLIR prints it."""

    pretty: str
    generic: str


@functools.cache
def lowered(name: str) -> Lowered:
    """Return a program of the table, lowered."""
    program = PROGRAMS[name]
    function = jax.jit(program.function)
    if not any(export.is_symbolic_dim(size) for argument in program.arguments for size in argument.shape):
        traced = function.trace(*program.arguments)
        return printed_by_mlir(str(traced.lower(lowering_platforms=(program.platform,)).compiler_ir("stablehlo")))
    return printed_by_mlir(export.export(function, platforms=(program.platform,))(*program.arguments).mlir_module())


def printed_by_mlir(text: str) -> Lowered:
    """Return both forms of a module. Raises MLIRError if MLIR refuses it."""
    with mlir.make_ir_context():
        module: Any = ir.Module.parse(text)
        return Lowered(str(module), module.operation.get_asm(print_generic_op_form=True))
