"""Idioms with indices, slices, reshapes and concatenations."""

# The stubs in typings/ have the functions that sdy uses, not these.
# pyright: reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportCallIssue=false, reportUnknownVariableType=false

import jax.numpy as jnp
from jax import lax

from array_functions.array_function import MATRIX, SQUARE, TENSOR, VECTOR, ArrayFunction, differentiable, other

FUNCTIONS: dict[str, ArrayFunction] = {
    "x[::2]": differentiable(lambda x: x[::2], MATRIX),
    "x[1::3,::-1]": differentiable(lambda x: x[1::3, ::-1], MATRIX),
    "x[-1]": differentiable(lambda x: x[-1], MATRIX),
    "x[:,None]*y[None]": differentiable(lambda x, y: x[:, None] * y[None], MATRIX, MATRIX),
    "x[jnp.arange]": differentiable(lambda x: x[jnp.arange(0, 32, 3)], MATRIX),
    "x[mask]where": differentiable(lambda x: jnp.where(x > 0, x, 0).sum(0), MATRIX),
    "x[i,j]pairs": differentiable(lambda x: x[jnp.arange(16), jnp.arange(16)], MATRIX),
    "x[:, idx]": differentiable(lambda x: x[:, jnp.array([3, 1, 1, 7])], MATRIX),
    "x[idx][:,idx]": differentiable(lambda x: x[jnp.array([3, 1, 30])][:, jnp.array([0, 5])], MATRIX),
    "x[ix_]": differentiable(lambda x: x[jnp.ix_(jnp.array([3, 1, 30]), jnp.array([0, 5]))], MATRIX),
    "at row set": differentiable(lambda x, y: x.at[3].set(y[5]), MATRIX, MATRIX),
    "at col add": differentiable(lambda x, y: x.at[:, 3].add(y[:, 5]), MATRIX, MATRIX),
    "at corner": differentiable(lambda x: x.at[0, 0].set(7.0), MATRIX),
    "at last": differentiable(lambda x: x.at[-1].multiply(2.0), MATRIX),
    "at block": differentiable(lambda x, y: x.at[4:12, 2:9].set(y[:8, :7]), MATRIX, MATRIX),
    "at mask": other(lambda x: x.at[jnp.where(x[:, 0] > 0, size=8, fill_value=0)].set(0.0), MATRIX),
    "at get fill": differentiable(lambda x: x.at[jnp.array([1, 50])].get(mode="fill", fill_value=0.0), MATRIX),
    "at none": differentiable(lambda x: x[..., None].at[..., 0].set(1.0), MATRIX),
    "at min dup": other(lambda x, y: x.at[jnp.arange(32) % 4].min(y), MATRIX, MATRIX),
    "at power": differentiable(lambda x: x.at[2:5].power(2), MATRIX),
    "scalar at": differentiable(lambda x: jnp.sum(x).at[...].set(3.0) + jnp.zeros(()).at[()].add(x[0, 0]), MATRIX),
    "dynamic slice row": differentiable(lambda x: lax.dynamic_slice_in_dim(x, jnp.argmax(x[:, 0]), 4, 0), MATRIX),
    "dus": differentiable(
        lambda x, y: lax.dynamic_update_slice(x, y[:4, :4], (jnp.argmax(x[:, 0]), 2)), MATRIX, MATRIX
    ),
    "dynamic index": differentiable(lambda x: lax.dynamic_index_in_dim(x, jnp.argmax(x[:, 0]), 0, False), MATRIX),
    "ravel": differentiable(lambda x: x.ravel(), TENSOR),
    "reshape merge": differentiable(lambda x: x.reshape(128, 24), TENSOR),
    "reshape split": differentiable(lambda x: x.reshape(8, 4, 4, 24), TENSOR),
    "reshape odd": differentiable(lambda x: x.reshape(12, 256), TENSOR),
    "space to depth": differentiable(
        lambda x: x.reshape(4, 2, 8, 2, 24).transpose(0, 2, 1, 3, 4).reshape(4, 8, 96), TENSOR
    ),
    "pixel shuffle": differentiable(lambda x: x.reshape(8, 16, 4, 6).transpose(0, 2, 1, 3).reshape(32, 96), TENSOR),
    "swapaxes": differentiable(lambda x: jnp.swapaxes(x, 0, 2), TENSOR),
    "squeeze expand": differentiable(lambda x: jnp.squeeze(x[:, :1]), TENSOR),
    "concat axis0": differentiable(lambda x, y: jnp.concatenate([x, y, x[:3]], 0), MATRIX, MATRIX),
    "concat axis1": differentiable(lambda x, y: jnp.concatenate([x, y[:, :5]], 1), MATRIX, MATRIX),
    "stack -1": differentiable(lambda x, y: jnp.stack([x, y], -1), MATRIX, MATRIX),
    "hstack split": differentiable(lambda x: jnp.split(x, [3, 10], 1), MATRIX),
    "vsplit": differentiable(lambda x: [t * i for i, t in enumerate(jnp.vsplit(x, 4))], MATRIX),
    "roll dyn": differentiable(lambda x: jnp.roll(x, jnp.argmax(x[:, 0]), 0), MATRIX),
    "shift": differentiable(lambda x: jnp.concatenate([jnp.zeros((1, 16)), x[:-1]], 0), MATRIX),
    "shift diff": differentiable(lambda x: x[1:] - x[:-1], MATRIX),
    "laplacian": differentiable(
        lambda x: x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1], MATRIX
    ),
    "windows": differentiable(lambda x: jnp.stack([x[i : i + 60] for i in range(5)]), VECTOR),
    "strided windows": differentiable(lambda x: x[jnp.arange(0, 60, 4)[:, None] + jnp.arange(4)], VECTOR),
    "upper packed": differentiable(lambda x: x[jnp.triu_indices(16, 1)], SQUARE),
    "sym": differentiable(lambda x: (x + x.T) / 2, SQUARE),
    "outer diff": differentiable(lambda x: jnp.abs(x[:, None] - x[None]), VECTOR),
    "pairwise dist": differentiable(lambda x: jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-6), MATRIX),
    "cdist mm": differentiable(lambda x, y: (x**2).sum(1)[:, None] - 2 * x @ y.T + (y**2).sum(1), MATRIX, MATRIX),
}
