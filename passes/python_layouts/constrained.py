"""Functions whose equations' results are constrained. Printed files contain this code, so it needs JAX alone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial, wraps
from inspect import getsource
from typing import Any

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Rule = P | tuple[P, ...] | None
"""The sharding of an equation's result, or those of its operands and its result, or None to leave it alone."""


def constrain(
    function: Callable[..., Any],
    mesh: Mesh,
    rules: Mapping[str, P | tuple[P, ...] | None],
) -> Callable[..., Any]:
    """Return `function` with a sharding of each equation's result, by its path."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        jaxpr, result = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
        unused = {*rules} - {"*"}

        def change(equation: JaxprEqn, path: str) -> Sequence[JaxprEqn]:
            key = next(key for key in rules if fnmatchcase(f"/{path}", f"*/{key}"))
            unused.discard(key)
            rule = rules[key]
            if rule is None:
                return [equation]
            if isinstance(rule, P):
                return with_sharding(equation, NamedSharding(mesh, rule))
            return [with_shards(equation, mesh, rule)]

        changed = rewrite(jaxpr, change, Counter())
        if unused:
            raise ValueError(f"no equation of the function matches {sorted(unused)}")
        values = jaxpr_as_fun(changed)(*jax.tree.leaves((args, kwargs)))
        return jax.tree.unflatten(jax.tree.structure(result), values)

    return call


def rewrite(
    part: Any,
    change: Callable[[JaxprEqn, str], Sequence[JaxprEqn]],
    counts: Counter[str],
) -> Any:
    """Return a jaxpr with the equations that `change` returns for each and its path.

    The path has the primitive, the types of the results, and the number among the
    equations that have the same, those of loops and calls included.
    """
    if part.__class__ is tuple:
        return tuple(rewrite(each, change, counts) for each in part)
    if isinstance(part, Jaxpr):
        equations: list[JaxprEqn] = []
        for equation in part.eqns:
            types = " ".join(value.aval.str_short() for value in equation.outvars)
            types = types.replace("[", "(").replace("]", ")")
            kind = f"{equation.primitive.name}/{types}"
            parameters = equation.params.items()
            inner = {key: rewrite(value, change, counts) for key, value in parameters}
            path = f"{kind}/{counts[kind]}"
            equations += change(equation.replace(params=inner), path)
            counts[kind] += 1
        return part.replace(eqns=equations)
    if isinstance(part, ClosedJaxpr):
        return part.replace(jaxpr=rewrite(part.jaxpr, change, counts))
    return part


def with_sharding(equation: JaxprEqn, sharding: NamedSharding) -> Sequence[JaxprEqn]:
    """Return an equation and those that constrain its results."""
    constrained = partial(lax.with_sharding_constraint, shardings=sharding)
    variables: list[Any] = []
    constraints: list[JaxprEqn] = []
    for result in equation.outvars:
        jaxpr = jax.make_jaxpr(constrained)(array_of(result)).jaxpr
        variables += jaxpr.invars
        constraints += [each.replace(outvars=[result]) for each in jaxpr.eqns]
    return [equation.replace(outvars=variables), *constraints]


def with_shards(
    equation: JaxprEqn,
    mesh: Mesh,
    specs: tuple[P, ...],
) -> JaxprEqn:
    """Return a product of matrices as one of shards, whose partial sums are scattered.

    The shardings are those of the operands and of the result.
    """
    *operands, result = specs
    (contracted, _), _ = equation.params["dimension_numbers"]
    summed = [axis for dim in contracted for axis in axes_of(operands[0], dim)]

    def product(*shards: jax.Array) -> jax.Array:
        value = equation.primitive.bind(*shards, **equation.params)
        left = summed
        for dim in range(value.ndim):
            axes = tuple(axis for axis in axes_of(result, dim) if axis in summed)
            if axes:
                value = lax.psum_scatter(value, axes, scatter_dimension=dim, tiled=True)
            left = [axis for axis in left if axis not in axes]
        return lax.psum(value, tuple(left)) if left else value

    mapped = jax.shard_map(
        product,
        mesh=mesh,
        in_specs=tuple(operands),
        out_specs=result,
        check_vma=False,
    )
    arrays = map(array_of, equation.invars)
    (on_shards,) = jax.make_jaxpr(mapped)(*arrays).jaxpr.eqns
    return on_shards.replace(invars=equation.invars, outvars=equation.outvars)


def array_of(variable: Any) -> jax.ShapeDtypeStruct:
    """Return the shape and the element type of a variable."""
    return jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)


def axes_of(spec: P, dim: int) -> tuple[str, ...]:
    """Return the axes along which a dimension is sharded."""
    axes = spec[dim] if dim < len(spec) else None
    return (axes,) if isinstance(axes, str) else axes or ()


_FUNCTIONS = (constrain, rewrite, with_sharding, with_shards, array_of, axes_of)

CONSTRAIN_LINES = [getsource(each).splitlines() for each in _FUNCTIONS]
"""The lines of each function of a printed file, in order."""

CONSTRAIN_IMPORTS = (
    "from collections import Counter",
    "from collections.abc import Callable, Mapping, Sequence",
    "from functools import partial, wraps",
    "from typing import Any",
)
"""The imports of these functions from the standard library, besides `fnmatchcase`."""

CONSTRAIN_JAX_IMPORTS = (
    "from jax import lax",
    "from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun",
)
