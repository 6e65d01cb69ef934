"""The text of programs that JAX lowers, parsed and printed byte for byte as MLIR prints it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir

from samples import covering
from sdy.text import format, parse
from sdy.type_helpers import Function

X = np.ones((4, 8), np.float32)
IMAGES = np.ones((2, 8, 8, 3), np.float32)
MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def convolution(images: jax.Array) -> jax.Array:
    filters = jnp.ones((3, 3, 3, 4))
    return lax.conv_general_dilated(images, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pooling(images: jax.Array) -> jax.Array:
    return lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def collectives(x: jax.Array) -> jax.Array:
    gathered = lax.all_gather(lax.psum(x, "b"), "a", tiled=True)
    return gathered + lax.ppermute(x, "b", [(0, 1), (1, 0)]).sum()


PROGRAMS: dict[str, tuple[Function[Any], np.ndarray]] = {
    "arithmetic": (lambda x: jnp.where(x > 0.1, jnp.tanh(x) * 1e-6, x**2 + 0.01), X),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16) + 0.1, X),
    "float8": (lambda x: x.astype(jnp.float8_e4m3fn) * 1.5, X),
    "integers": (lambda x: ((x.astype(jnp.int8) << 1).astype(jnp.uint16) // 3, x.astype(jnp.int4)), X),
    "complex": (lambda x: jnp.abs(x * 1j + 2.5), X),
    "constants": (lambda x: x[:1, :1] + np.arange(400.0).reshape(4, 100) * (np.arange(100) % 3 == 0), X),
    "sort": (lambda x: (jnp.argsort(x), lax.top_k(x, 3), jnp.argmax(x, 1), jnp.cumsum(x, 0)), X),
    "scatter": (lambda x: x.at[jnp.array([0, 1]), 2:4].add(x[jnp.array([2, 3]), 2:4]), X),
    "slices": (lambda x: lax.dynamic_update_slice(lax.dynamic_slice(x, (1, 2), (2, 2)), x[:1, :1], (0, 1)), X),
    "loops": (lambda x: lax.scan(lambda c, y: (c + y, lax.fori_loop(0, 3, lambda i, z: z * i, c)), x[0], x), X),
    "branches": (lambda x: lax.switch(x[0, 0].astype(int), [jnp.sin, jnp.cos, lambda x: x], x), X),
    "linear algebra": (lambda x: (jnp.linalg.cholesky(x @ x.T), jnp.linalg.qr(x), jnp.fft.fft(x)), X),
    "random": (lambda x: x + jax.random.normal(jax.random.PRNGKey(0), x.shape), X),
    "calls": (jax.grad(lambda x: jax.checkpoint(jax.nn.gelu)(jax.nn.relu(x)).sum()), X),
    "convolution": (jax.grad(lambda images: convolution(images).sum()), IMAGES),
    "pooling": (jax.grad(lambda images: pooling(images).sum()), IMAGES),
    "sharding": (lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P("a", "b"))), X),
    "collectives": (
        jax.shard_map(collectives, mesh=MESH, in_specs=P("a", "b"), out_specs=P(None, "b"), check_vma=False),
        X,
    ),
}


@covering
@pytest.mark.parametrize("debuginfo", [False, True], ids=["", "debuginfo"])
@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_mlir_prints(name: str, generic: bool, debuginfo: bool):
    program, argument = PROGRAMS[name]
    text = jax.jit(program).lower(argument).as_text(debug_info=True)
    with mlir.make_ir_context():
        module = ir.Module.parse(text).operation
        expected = module.get_asm(print_generic_op_form=generic, enable_debug_info=debuginfo)
    assert format(parse(text, "-"), generic=generic, debuginfo=debuginfo) == expected
