"""`python callback_programs.py [--repeat N] [NAME...]`: the calls that callbacks receive under `sdy.jit` and `jax.jit`.

Each program is a jax function that calls Python, directly or in an annotated operator, in one of the places where a
callback is allowed. The reference is the plain function under `jax.jit`, compiled `--repeat` times; the program is
compiled as often by `sdy.jit` and by `jax.jit`, with garbage collections in between. Prints as JSON, for each program,
the number of runs whose calls or results differ from the reference; a process that crashes prints nothing.
"""

import argparse
import gc
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import sdy

Function = Callable[[jax.Array], Any]

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:4])
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)

CALLS: list[str] = []


def see(*values: Any) -> None:
    """Record a call."""
    CALLS.append(str([np.asarray(value).round(3).tolist() for value in values]))


def doubled(value: Any) -> Any:
    see(value)
    return np.asarray(value) * np.float32(2)


def debug_callback(x: jax.Array) -> jax.Array:
    jax.debug.callback(see, x.max(), x)
    return jnp.sin(x)


def debug_print(x: jax.Array) -> jax.Array:
    jax.debug.print("{} {}", x.max(), x[0, 0])
    return jnp.sin(x)


def pure(x: jax.Array) -> jax.Array:
    return jax.pure_callback(doubled, jax.typeof(x), x, vmap_method="sequential")


def unordered(x: jax.Array) -> jax.Array:
    io_callback(see, None, x[0])
    return io_callback(doubled, jax.typeof(x), x) + 1


def ordered(x: jax.Array) -> jax.Array:
    io_callback(see, None, x[0], ordered=True)
    y = io_callback(doubled, jax.typeof(x), x, ordered=True)
    io_callback(see, None, y, ordered=True)
    return y + 1


def in_scan(x: jax.Array) -> jax.Array:
    def step(carry: jax.Array, number: jax.Array) -> tuple[jax.Array, None]:
        jax.debug.callback(see, number, carry)
        return carry + number, None

    return lax.scan(step, x, jnp.arange(3.0))[0]


def in_branch(x: jax.Array) -> jax.Array:
    return lax.cond(x.sum() > 100, debug_callback, pure, x)


@jax.custom_vjp
def told_backwards(x: jax.Array) -> jax.Array:
    return jnp.sin(x)


def _told_backwards(x: jax.Array, gradient: jax.Array) -> tuple[jax.Array]:
    jax.debug.callback(see, x, gradient)
    return (jnp.cos(x) * gradient,)


told_backwards.defvjp(lambda x: (told_backwards(x), x), _told_backwards)


@jax.custom_vjp
def both_ways(x: jax.Array) -> jax.Array:
    return pure(x)


both_ways.defvjp(lambda x: (pure(x), None), lambda _, gradient: (pure(gradient),))


def squares(function: Function) -> Function:
    return lambda x: (function(x) ** 2).sum()


def repeated(function: Function) -> Function:
    return lambda x: lax.scan(lambda carry, _: (function(carry), None), x, None, length=2)[0]


USES: dict[str, Callable[[Function], Function]] = {
    "call": lambda function: lambda x: function(x) + 1,
    "result": lambda function: function,
    "unused": lambda function: lambda x: (function(x), x)[1],
    "scan": repeated,
    "cond": lambda function: lambda x: lax.cond(x[0, 0] < 0, function, lambda x: x, x),
    "grad": lambda function: jax.grad(squares(function)),
    "grad of scan": lambda function: jax.grad(squares(repeated(function))),
    "remat": lambda function: jax.grad(squares(jax.checkpoint(function))),
    "jvp": lambda function: lambda x: jax.jvp(function, (x,), (x,)),
    "vmap": lambda function: lambda x: jax.vmap(function)(jnp.stack([x, x + 1])),
    "shard_map": lambda function: jax.shard_map(function, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y")),
}

_EFFECTS = ("call", "result", "unused", "scan", "cond", "shard_map")
_DIFFERENTIABLE = ("grad", "grad of scan")

OPERATORS: dict[Function, tuple[str, ...]] = {
    debug_callback: tuple(USES),
    debug_print: ("call", "grad"),
    pure: (*_EFFECTS, "vmap"),
    unordered: (*_EFFECTS, "vmap"),
    ordered: _EFFECTS,
    in_scan: ("call", *_DIFFERENTIABLE),
    in_branch: ("call", "scan"),
    told_backwards: ("call", *_DIFFERENTIABLE, "remat"),
    both_ways: ("call", *_DIFFERENTIABLE),
}
"""The functions that are annotated operators, and the positions that each is used in."""

_numbers = count()


def operator(function: Function, **options: Any) -> Function:
    """Return `function` as a new annotated operator."""

    def apply(x: jax.Array) -> jax.Array:
        return function(x)

    return sdy.register_op("a b -> a b", name=f"{function.__name__}_{next(_numbers)}", **options)(apply)


def with_backward() -> Function:
    """Return an operator whose forward and backward functions call Python."""

    def backward(x: jax.Array, gradient: jax.Array) -> jax.Array:
        return pure(gradient)

    named = sdy.register_op("a b, a b -> a b", name=f"backward_{next(_numbers)}")(backward)
    return operator(pure, backward=named)


def used(use: Callable[[Function], Function], make: Callable[..., Function], *arguments: Any) -> Function:
    return use(make(*arguments))


def partitioned_by_author(function: Function) -> Function:
    """Return a function that each device applies to its shard, as `shard_map` does."""
    made = custom_partitioning(function)
    made.def_partition(
        lambda mesh, arguments, result: (mesh, function, result.sharding, (arguments[0].sharding,)),
        sharding_rule="i j -> i j",
    )
    return made


def among_others(function: Function) -> Function:
    def program(x: jax.Array) -> jax.Array:
        jax.debug.callback(see, x)
        y = function(x)
        jax.debug.callback(see, y)
        return y

    return program


def programs() -> dict[str, tuple[Function, Callable[[], Function], tuple[Any, ...]]]:
    """Return, by name, the plain function, a constructor of its form with an operator, and the jits to compile it."""
    both, ours = (sdy.jit, jax.jit), (sdy.jit,)
    found: dict[str, tuple[Function, Callable[[], Function], tuple[Any, ...]]] = {}
    for function, places in OPERATORS.items():
        for place in places:
            use = USES[place]
            name = f"operator {function.__name__}: {place}"
            found[name] = use(function), partial(used, use, operator, function), both
    for place in _DIFFERENTIABLE:
        use = USES[place]
        found[f"backward: {place}"] = use(both_ways), partial(used, use, with_backward), both
    for function in (debug_callback, pure, unordered):
        plain = among_others(USES["shard_map"](function))
        make = partial(among_others, partitioned_by_author(function))
        found[f"custom_partitioning {function.__name__}"] = plain, make, ours  # jax loses callbacks here
    return found


def ran(jit: Any, function: Function) -> tuple[Any, list[str]]:
    """Compile `function` with `jit`, call it, and return its result and the recorded calls, sorted."""
    CALLS.clear()
    x = jax.device_put(X, NamedSharding(MESH, P("x", "y")))
    compiled = jit(function).lower(x).compile()
    del function
    gc.collect()
    with redirect_stdout(StringIO()) as printed:
        result = jax.tree.map(np.asarray, compiled(x))
        jax.effects_barrier()
    return result, sorted([*CALLS, *printed.getvalue().splitlines()])


def agree(given: Any, expected: Any) -> bool:
    pairs = zip(jax.tree.leaves(given), jax.tree.leaves(expected), strict=True)
    return all(np.allclose(*pair, rtol=1e-4, atol=1e-5) for pair in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    wrong: dict[str, int] = {}
    for name, (plain, make, jits) in programs().items():
        if options.names and name not in options.names:
            continue
        expected, calls = ran(jax.jit, plain)
        runs = [ran(jit, make()) for _ in range(options.repeat) for jit in jits]
        wrong[name] = sum(not agree(given, expected) or seen != calls for given, seen in runs)
        print(f"{name}: {wrong[name]} of {len(runs)} runs differ", file=sys.stderr, flush=True)
    print(json.dumps(wrong))


if __name__ == "__main__":
    main()
