"""Pallas kernels that jax refuses to lower for several TPU devices: the error names the kernel and line to write."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy
from sdy.diagnostics import DiagnosticError

REFUSAL = "Mosaic kernels cannot be automatically partitioned. Please wrap the call in a shard_map."
ADVICE = 'write @sdy.register_op("a^ b^, a^ b^ -> a^ b^") above the function that calls it, and remove the ^ of'


def add(x: jax.Array, y: jax.Array) -> jax.Array:
    def kernel(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] + y[...]

    pallas: Any = import_module("jax.experimental.pallas")
    return pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name="add_two")(x, y)


def tensor(shape: tuple[int, ...] = (16, 128)) -> jax.ShapeDtypeStruct:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, P("x")))


def in_a_loop(x: jax.Array, y: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 3, lambda _, x: add(x, y), x)


@pytest.mark.parametrize("function", [add, in_a_loop, jax.jit(in_a_loop)])
def test_a_kernel_for_a_tpu_is_told_by_name_and_line(function: Callable[..., Any]):
    traced = sdy.jit(lambda x, y: jnp.tanh(function(x, y))).trace(tensor(), tensor())
    with pytest.raises(DiagnosticError) as caught:
        traced.lower(lowering_platforms=("tpu",))
    assert caught.value.message.startswith("the Pallas kernel 'add_two' has no annotation")
    assert caught.value.message.endswith(REFUSAL)
    (note,) = caught.value.notes
    assert note.message.startswith(ADVICE)
    assert caught.value.where is not None
    assert caught.value.where.filename == __file__
    assert caught.value.where.line == add.__code__.co_firstlineno + 5


def refusing(name: str) -> Callable[[jax.Array], jax.Array]:
    """Return a function that jax refuses to lower on any platform, as it refuses kernels for a TPU."""
    primitive = Primitive(name)

    @primitive.def_abstract_eval
    def _(x: ShapedArray, **_: Any) -> ShapedArray:
        return x

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(REFUSAL)

    mlir.register_lowering(primitive, refuse)
    return lambda x: primitive.bind(x, name="scale")


def test_it_is_told_where_the_function_is_called():
    x = jax.device_put(np.ones((8, 4), np.float32), tensor().sharding)
    with pytest.raises(DiagnosticError, match="the Pallas kernel 'scale' has no annotation") as caught:
        sdy.jit(refusing("pallas_call"))(x)
    assert '"a^ b^ -> a^ b^"' in str(caught.value)


def test_other_custom_calls_are_refused_by_jax():
    x = jax.device_put(np.ones((8, 4), np.float32), tensor().sharding)
    with pytest.raises(NotImplementedError, match="cannot be automatically partitioned"):
        sdy.jit(refusing("other_call"))(x)
