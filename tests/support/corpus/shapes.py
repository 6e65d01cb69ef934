"""Operations that only move elements: reshapes that split axes, transposes, slices, pads, and reshards."""

import jax
import jax.numpy as jnp
from jax import lax

from partitioned_programs import CUBE, LINE, Argument, D, M, Program, X, Y, Z, constrain, ints, program


def shuffle_pixels(x: jax.Array) -> jax.Array:
    """Turn the 4 channels of [batch, height, width, 4] into twice the height and width."""
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height, width, 2, 2, channels // 4).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(batch, 2 * height, 2 * width, channels // 4)


def split_heads(x: jax.Array) -> jax.Array:
    return x.reshape(*x.shape[:2], 4, -1).transpose(0, 2, 1, 3)


def round_robin(x: jax.Array) -> jax.Array:
    """Reshard through sub-axes and permuted axes, back to the initial sharding."""
    for axes in (((X, Y), Z), (Z, (Y, X)), ((Z, X), Y), (None, (X, Y, Z)), ((Y,), None), (X, Y)):
        x = constrain(x + 1, *axes)
    return x


_SPLIT = Argument((16, 32), (D, M))

PROGRAMS: dict[str, Program] = {
    "reshape": program(lambda x: x.reshape(16, 4, 8).transpose(1, 0, 2).reshape(4, 128), _SPLIT),
    "flatten": program(lambda x: x.reshape(-1), _SPLIT),
    "parts of an axis": program(lambda x: x.reshape(2, 8, 4) + 1, Argument((16, 4), (X,)), mesh=LINE),
    "parts of an axis, merged": program(
        lambda x: jnp.sin(x.reshape(4, 4, 4, 2)).sum(0).reshape(16, 2), Argument((16, 8), (X,)), mesh=LINE
    ),
    "parts of an axis, contracted": program(
        lambda x, w: jnp.einsum("abc,bd->acd", x.reshape(2, 8, 4), w),
        Argument((16, 4), (X,)),
        Argument((8, 4)),
        mesh=LINE,
    ),
    "heads": program(split_heads, Argument((8, 6, 16), (D, None, M))),
    "pixels": program(shuffle_pixels, Argument((4, 4, 8, 4), (None, D, M))),
    "transpose": program(lambda x: constrain(x.T, D, M), _SPLIT),
    "transpose over three axes": program(
        lambda x: constrain(x.transpose(2, 0, 1), X, Y, Z), Argument((8, 4, 4), (X, Y, Z)), mesh=CUBE
    ),
    "reshards": program(round_robin, Argument((16, 16), (X, Y)), mesh=CUBE),
    "reshard of rows to columns": program(lambda x: constrain(x, None, X), ints((16, 16), X), mesh=LINE),
    "reshard of two dimensions to one": program(
        lambda x: constrain(x, None, (X, Y)), Argument((8, 8, 4), (Y, None, X)), mesh=CUBE
    ),
    "pad and crop": program(lambda x: lax.pad(x, 0.0, ((1, -1, 0), (0, 0, 0))), _SPLIT),
    "pads": program(
        lambda x: (jnp.pad(x, 3), jnp.pad(x, ((2, 1), (0, 0)), "wrap"), lax.pad(x, 1.0, ((0, 0, 1), (0, 0, 2)))), _SPLIT
    ),
    "concatenate": program(lambda x, y: jnp.concatenate([x, y]), _SPLIT, Argument((8, 32), (D, M))),
    "concatenate, other dimension split": program(
        lambda x, y: jnp.concatenate([x, y], 1), Argument((8, 4), (D,)), Argument((8, 8), (D,))
    ),
    "stack": program(lambda x, y: jnp.stack([x, y], 1), _SPLIT, _SPLIT),
    "slice": program(lambda x: x[2:10], _SPLIT),
    "slices": program(lambda x: (x[::2], x[1::3, 4:28:2], x[-1], x[:, :1]), _SPLIT),
    "halves": program(lambda x: jnp.multiply(*jnp.split(x, 2, 1)), _SPLIT),
    "reverse": program(lambda x: x[::-1], _SPLIT),
    "rolls": program(lambda x: (jnp.roll(x, 3, 0), jnp.roll(x, (-1, 5), (0, 1))), _SPLIT),
    "tiles": program(lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 0)), Argument((8, 8), (D, M))),
    "broadcasts": program(
        lambda x, y: x[:, None] * y + jnp.broadcast_to(x[:1], (16, 8)), Argument((16,), (D,)), Argument((8,), (M,))
    ),
    "windows": program(
        lambda x: jnp.stack([x[i : i + 29] for i in range(4)]).mean(0), Argument((32,), (X,)), mesh=LINE
    ),
}
