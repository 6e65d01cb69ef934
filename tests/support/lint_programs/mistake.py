"""Data model of the programs with one mistake that lint finds once, and the models that they share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from lint_programs.planted import Planted, Written, tensor

EIGHT = {"data": 8}
DATA = tensor(8192, 1024, split=P("data"))
SQUARE = tensor(4096, 4096, split=P(None, "model"))
constrained = lax.with_sharding_constraint


@dataclass(frozen=True)
class Mistake:
    """A program with a mistake: at a marked line, or in the sharding of the argument of a path."""

    rule: str
    written: Written
    argument: str = ""
    at: Callable[..., Any] | None = None
    has_cure: bool = True
    needs_names: bool = False
    """True if the rule tells parameters from data by the names of the arguments, or reads those of primitives."""

    @property
    def cause(self) -> str:
        """The text that a finding contains: the path, or the file and the line."""
        if self.argument:
            return f"({self.argument})"
        file, line = Planted("", "", self.written, self.written, self.at).line()
        return f"{Path(file).name}:{line}"


def descend(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """Return a step of gradient descent."""

    def step(params: Any, *batch: jax.Array) -> Any:
        gradients = jax.grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g.astype(p.dtype), params, gradients)

    return step


def layers_loss(params: Any, x: jax.Array) -> jax.Array:
    for layer in params:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return jnp.mean(x**2)


def layers(odd: dict[str, P], number: int = 2, count: int = 4) -> list[dict[str, Any]]:
    usual = {"up": P("data", "model"), "down": P("model", "data")}
    shapes = {"up": (1024, 4096), "down": (4096, 1024)}
    return [
        {
            name: tensor(*shapes[name], split=(odd if index == number else usual).get(name, usual[name]))
            for name in usual
        }
        for index in range(count)
    ]


def mlp_loss(params: Any, x: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"]) ** 2)


def mlp(up: P, down: P) -> dict[str, Any]:
    return {"up": tensor(1024, 8192, split=up), "down": tensor(8192, 1024, split=down)}
