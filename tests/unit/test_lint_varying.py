"""Along which axes values in a `jax.shard_map` differ from device to device."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import sdy
from lint_programs.planted import Written, tensor
from sdy.dialect.meshes import main_mesh
from sdy.dialect.ops import ManualComputationOp
from sdy.ir.walking import operations_of
from sdy.passes.account.lint.varying import Varying


def until_small(x: jax.Array) -> jax.Array:
    return lax.while_loop(lambda carry: carry[0] > 1, lambda carry: (carry[0] / 2, carry[1] + 1), (x.sum(), 0.0))[1]


def counted(x: jax.Array) -> jax.Array:
    return lax.fori_loop(0, 3, lambda _, total: (total + lax.axis_index("data")).astype(jnp.int32), x.shape[0])


LOCAL: dict[str, tuple[Callable[[jax.Array], jax.Array], str]] = {
    "operand": (lambda x: x + 1, "data model"),
    "sum": (lambda x: lax.psum(x, "data"), "model"),
    "sum over both axes": (lambda x: lax.psum(x, ("data", "model")), ""),
    "gather and maximum": (lambda x: lax.pmax(lax.all_gather(x, "model"), "data"), ""),
    "scattered sum": (lambda x: lax.psum_scatter(lax.psum(x, "data"), "data"), "data model"),
    "constant": (lambda x: jnp.ones(x.shape).sum(), ""),
    "number along the last axis": (lambda x: lax.axis_index("model") * 3, "model"),
    "number along the first axis": (lambda x: lax.axis_index("data") + lax.psum(x, ("data", "model")), "data"),
    "number of iterations": (until_small, "data model"),
    "carried value": (counted, "data"),
}
"""Functions of shards, with the axes along which their results differ."""


@pytest.mark.parametrize(("local", "expected"), LOCAL.values(), ids=LOCAL)
def test_values_differ_along_axes(local: Callable[[jax.Array], jax.Array], expected: str) -> None:
    def mapped(x: jax.Array) -> jax.Array:
        spec = P("data", "model")
        return jax.shard_map(local, in_specs=spec, out_specs=P(), check_vma=False)(x)

    module = sdy.parse(Written(mapped, (tensor(16, 16, split=P("data", "model")),)).lowered().as_text())
    (manual,) = operations_of(module, ManualComputationOp)
    end = manual.body.block.last_op
    assert end
    assert Varying(manual, main_mesh(module)).axes(end.operands[0]) == {*expected.split()}
