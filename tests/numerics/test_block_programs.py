"""Comparison of programs whose operations run in blocks with the whole program, in the interpreter."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

import sdy
from samples import sample
from sdy.blocks import block_operation, operands_of
from sdy.box import Box
from sdy.ir.shapes import shape_of
from sdy.passes.blocks.block_shapes import can_be_computed
from sdy.passes.blocks.fit_blocks import fit_blocks, smallest_block_bytes
from sdy.passes.blocks.local_operation import local_program, whole_program
from sdy.passes.jax.program.rounding import Rounding, first_mismatch
from sdy.type_helpers import Function

Arrays = Sequence[np.ndarray[Any, Any]]

LIMIT = 512


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def places(end: int, *shape: int) -> np.ndarray[Any, Any]:
    """Return indices of a dimension of `end` elements, some of them negative or beyond it."""
    return np.random.default_rng(1).integers(-end - 3, end + 3, shape).astype(np.int32)


@sdy.register_op("b s^ -> b s^")
def running(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=1)


@sdy.register_op("(h d^) s^ -> h d^ s^")
def heads(x: jax.Array, h: int = 3) -> jax.Array:
    return jnp.cumsum(x.reshape(h, -1, x.shape[1]), axis=2)


X = f32(11, 13)
LONG = f32(257)

PROGRAMS: dict[str, tuple[Function[Any], Sequence[Any]]] = {
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), [X]),
    "chlo": (lambda x: lax.lgamma(x) + lax.digamma(x) + lax.erf_inv(x / 9) + lax.nextafter(x, x + 1), [abs(X)]),
    "layer norm": (lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5), [X]),
    "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0), lax.top_k(x, 3)), [X]),
    "fourier transform": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x, axis=1), axis=1), [f32(11, 12)]),
    "cholesky": (jax.vmap(lambda a: jnp.linalg.cholesky(a @ a.T + 9 * jnp.eye(3))), [f32(5, 3, 3)]),
    "bytes": (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, np.int8), np.float32), [X]),
    "reshapes": (lambda x: (x.reshape(-1), x.T.reshape(13, 11) + 1, x[:9, :4].reshape(6, 6).reshape(4, 9)), [X]),
    "reverse and concatenate": (lambda x: jnp.concatenate([x[::-1], x[:3, ::-1]])[1::3], [X]),
    "strided slices, gradient": (jax.grad(lambda x: (x[1::3] ** 2).sum() + (x[:, 2::5] ** 3).sum()), [X]),
    "pads": (lambda x: lax.pad(x, np.float32(7), ((-1, 2, 1), (2, -3, 2))), [X]),
    "iota": (lambda x: x + jnp.arange(257) + jnp.arange(257, dtype=np.uint16), [LONG]),
    "sums": (lambda x: (x.sum(), (1 + x / 99).prod(), x.max(), x.min(), (x > -9).all()), [LONG]),
    "places of extremes": (lambda x: (x.argmax(), x.argmin()), [LONG]),
    "sum of both dimensions": (lambda x: x.sum(), [f32(17, 19)]),
    "contraction": (lambda a, b: a @ b, [f32(3, 257), f32(257, 2)]),
    "gather": (lambda x, i: (x[i], x.at[i].get(mode="fill", fill_value=7)), [LONG, places(257, 9)]),
    "gather of rows": (lambda x, i: x[i], [X, places(11, 9)]),
    "gather in batches": (jax.vmap(lambda x, i: x[i]), [f32(3, 257), places(257, 3, 5)]),
    "gather by bytes": (lambda x, i: x[i], [LONG, np.arange(250, 256, dtype=np.uint8)]),
    "scatter": (lambda x, i, u: (x.at[i].add(u), x.at[i].max(u)), [LONG, places(257, 9), f32(9)]),
    "scatter of many": (lambda x, i, u: x.at[i].add(u), [f32(9), places(9, 257), LONG]),
    "scatter of rows": (lambda x, i, u: x.at[i].add(u), [X, places(11, 9), f32(9, 13)]),
    "scatter in batches": (
        jax.vmap(lambda x, i, u: x.at[i].add(u)),
        [f32(3, 257), places(257, 3, 5), f32(3, 5)],
    ),
    "scatter of windows": (
        lambda x, i, u: lax.scatter_add(x, i, u, lax.ScatterDimensionNumbers((1,), (), (0,))),
        [LONG, np.array([[-1], [3], [254], [100]], np.int32), f32(4, 4)],
    ),
    "dynamic slice": (lambda x, i: (lax.dynamic_slice(x, (i,), (90,)), x[i]), [LONG, np.int32(200)]),
    "dynamic slice of columns": (lambda x, i: lax.dynamic_slice(x, (0, i), (11, 4)), [X, np.int32(5)]),
    "dynamic update": (lambda x, i: lax.dynamic_update_slice(x, x[:90] * 2, (i,)), [LONG, np.int32(200)]),
    "dynamic update of columns": (
        lambda x, i: lax.dynamic_update_slice(x, x[:, :4] * 2, (0, i)),
        [X, np.int32(-5)],
    ),
    "loop": (lambda x, w: lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x), [X, f32(13, 13) / 4]),
    "loop of squares": (lambda x: lax.fori_loop(0, 3, lambda _, y: y @ y / 9, x), [f32(11, 11)]),
    "branch of squares": (lambda x: lax.cond(x[0, 0] > 9, lambda: x, lambda: x @ x - x.T @ x), [f32(11, 11)]),
    "loop by columns": (lambda x: lax.fori_loop(0, 3, lambda _, y: y - jnp.sort(y, 0)[::-1], x), [X]),
    "loop in a loop": (
        lambda x: lax.fori_loop(0, 2, lambda i, y: y + lax.fori_loop(0, 2, lambda j, z: z * 2 + i, y), x),
        [X],
    ),
    "loop of slices": (
        lambda x: lax.fori_loop(0, 2, lambda _, y: jnp.pad(y[:, 2:], ((0, 0), (0, 2))) + y.reshape(11, 13), x),
        [X],
    ),
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1]) + 1), (0, x)), [X]),
    "scan": (lambda x: lax.scan(lambda h, a: (jnp.tanh(h + a), h * 2), x[0], x), [X]),
    "scan of iterations": (lambda x: lax.scan(lambda h, a: (h + a.sum() + h.sum(), h[::2]), x[0], x), [f32(9, 23)]),
    "scan backwards": (
        lambda x: lax.scan(lambda h, a: (h + a.sum() + h.sum(), h[::2]), x[0], x, reverse=True),
        [f32(9, 23)],
    ),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda: x * 2, lambda: jnp.sort(x, 1)), [X]),
    "switch": (
        lambda x, k: lax.switch(k, [lambda: x.sum() + x, lambda: x + 1, lambda: x[::-1]]),
        [LONG, np.int32(2)],
    ),
    "triangular solve": (
        lambda a, b: lax.linalg.triangular_solve(a + 9 * jnp.eye(4), b, left_side=True, lower=True),
        [f32(4, 4), f32(4, 97)],
    ),
    "gradient of max pooling": (
        jax.grad(lambda x: (lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()),
        [f32(13, 21)],
    ),
    "gradient of pooling, windows overlap": (
        jax.grad(lambda x: (lax.reduce_window(x, -np.inf, lax.max, (3, 2), (2, 1), ((1, 1), (0, 1))) ** 2).sum()),
        [np.floor(f32(11, 14))],
    ),
    "annotated": (lambda x: (running(x), heads(x[:9], h=3)), [X]),
    "nothing": (
        lambda x: (x[:0] + 1, x[:, :0] @ x[:, :0].T, jnp.concatenate([x[:0], x]), x[:0].sum(0), jnp.sort(x[:0])),
        [X],
    ),
}


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def slices(region: Box) -> tuple[slice, ...]:
    return tuple(map(slice, region.start.tolist(), region.end.tolist()))


def in_blocks(op: Operation, operands: Arrays) -> Arrays:
    """Compute an operation in two or three blocks along each axis, from their regions of the operands."""
    blocks = block_operation(op)
    if blocks is None or 0 in blocks.index_shape or not blocks.axes:
        return sdy.interpret(whole_program(op), *operands)
    steps = list(blocks.index_shape)
    for axis, extent in enumerate(steps):
        shorter = [-(-extent // 3) if number == axis else size for number, size in enumerate(steps)]
        steps = shorter if can_be_computed(blocks, shorter) else steps
    results: list[np.ndarray[Any, Any]] = []
    for index in blocks.index_space.blocks(steps):
        regions: list[np.ndarray[Any, Any]] = []
        for operand, access in zip(operands, blocks.operands, strict=True):
            image = access.image(index)
            start = np.maximum(image.start, 0)
            end = np.maximum(np.minimum(image.end, access.shape), start)
            regions.append(operand[tuple(map(slice, start.tolist(), end.tolist()))])
        parts = sdy.interpret(local_program(op, blocks, index), *regions)
        results = results or [
            np.empty(access.shape, part.dtype) for access, part in zip(blocks.results, parts, strict=True)
        ]
        for result, access, part in zip(results, blocks.results, parts, strict=True):
            result[slices(access.image(index))] = part
    return results


def run_in_blocks(module: ModuleOp, arguments: Arrays) -> Arrays:
    main = main_of(module)
    values: dict[SSAValue, np.ndarray[Any, Any]] = dict(zip(main.args, map(np.asarray, arguments), strict=True))
    for op in main.body.block.ops:
        if isinstance(op, ReturnOp):
            return [values[operand] for operand in op.operands]
        results = iter(in_blocks(op, [values[operand] for operand in operands_of(op)]))
        for result in op.results:
            shape = shape_of(result)
            values[result] = np.empty(shape, np.float32) if 0 in shape else next(results)
    raise AssertionError


def test_a_scatter_of_small_parts_has_few_of_them() -> None:
    """Its updates are split where they take most of a block: splitting the result along all dimensions gave 8,192."""
    module = sdy.from_jax(jax.jit(lambda x, u: x.at[1::2, ::3].set(u)), f32(32, 16), f32(16, 6))
    fit_blocks(module, 256)
    assert sum(op.name == "stablehlo.scatter" for op in module.walk()) <= 512


@pytest.mark.parametrize("name", sample(PROGRAMS, one_in=4))
def test_blocks_compute_what_the_whole_does(name: str) -> None:
    function, arguments = PROGRAMS[name]
    original = sdy.from_jax(jax.jit(function, keep_unused=True), *arguments)
    expected = sdy.interpret(original, *arguments)
    module = original.clone()
    fit_blocks(module, LIMIT)
    too_large = {
        op.name
        for op in main_of(module).body.block.ops
        if op.results and 0 not in shape_of(op.results[0]) and smallest_block_bytes(op) > LIMIT
    }
    assert too_large <= {"stablehlo.concatenate", "stablehlo.constant"}  # a concatenation is a view
    results = run_in_blocks(module, arguments)
    assert [result.shape for result in results] == [wanted.shape for wanted in expected]
    assert first_mismatch(results, expected, Rounding.of(original), lambda relative: expected) is None
