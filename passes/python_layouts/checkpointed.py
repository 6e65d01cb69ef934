"""Functions under `jax.checkpoint` with names of results. Printed files contain this code, so it needs JAX alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from inspect import getsource
from pathlib import PurePath
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name, checkpoint_policies
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun


def checkpoint(
    function: Callable[..., Any], saved: Mapping[str, str], offloaded: Mapping[str, str]
) -> Callable[..., Any]:
    """Return `function` under `jax.checkpoint`, which keeps results on the device or on the host by their names.

    The names are by the source line and the primitive of an equation.
    """

    @wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        jaxpr, result = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
        changed = jaxpr_as_fun(with_names(jaxpr, {**saved, **offloaded}))
        values = changed(*jax.tree.leaves((args, kwargs)))
        return jax.tree.unflatten(jax.tree.structure(result), values)

    policy = checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[*saved.values()],
        names_which_can_be_offloaded=[*offloaded.values()],
        offload_src="device",
        offload_dst="pinned_host",
    )
    return jax.checkpoint(named, policy=policy)


def with_names(part: Any, names: Mapping[str, str], line: str = "") -> Any:
    """Return a jaxpr with equations that name results; `line` is that of its call."""
    if part.__class__ is tuple:
        return tuple(with_names(each, names, line) for each in part)
    if not isinstance(part, Jaxpr):
        is_closed = isinstance(part, ClosedJaxpr)
        return part.replace(jaxpr=with_names(part.jaxpr, names, line)) if is_closed else part
    equations: list[JaxprEqn] = []
    for equation in part.eqns:
        is_call = bool([*inner_jaxprs(equation)])
        if is_call and not equation.primitive.name.startswith("custom_"):
            within = partial(with_names, names=names, line=line_of(equation) or line)
            inner = {key: within(value) for key, value in equation.params.items()}
            equations.append(equation.replace(params=inner))
        else:
            found = [names[key] for key in sources(equation, line) if key in names]
            equations += with_name(equation, found[0]) if found else [equation]
    return part.replace(eqns=equations)


def with_name(equation: JaxprEqn, name: str) -> Iterator[JaxprEqn]:
    """Yield an equation and those that name its results."""
    variables: list[Any] = []
    named: list[JaxprEqn] = []
    for result in equation.outvars:
        array = jax.ShapeDtypeStruct(result.aval.shape, result.aval.dtype)
        jaxpr = jax.make_jaxpr(partial(checkpoint_name, name=name))(array).jaxpr
        variables += jaxpr.invars
        named += [each.replace(outvars=[result]) for each in jaxpr.eqns]
    yield equation.replace(outvars=variables)
    yield from named


def sources(equation: JaxprEqn, line: str = "") -> Iterator[str]:
    """Yield the line and the primitive of an equation, and of those inside of it."""
    line = line_of(equation) or line
    yield f"{line} {equation.primitive.name}"
    for jaxpr in inner_jaxprs(equation):
        for inner in jaxpr.eqns:
            yield from sources(inner, line)


def line_of(equation: JaxprEqn) -> str:
    """Return the line and the column of the innermost call outside of libraries."""
    traceback = equation.source_info.traceback
    frames = zip(*traceback.raw_frames(), strict=True) if traceback else ()
    for code, instruction in frames:
        file = PurePath(code.co_filename)
        if {"site-packages", "dist-packages"}.isdisjoint(file.parts):
            line, _, column, _ = [*code.co_positions()][instruction // 2]
            return f"{file.name}:{line}:{column}"
    return ""


def inner_jaxprs(equation: JaxprEqn) -> Iterator[Jaxpr]:
    """Yield the jaxprs in the parameters of an equation."""
    for value in equation.params.values():
        for part in value if value.__class__ is tuple else (value,):
            if isinstance(part, Jaxpr):
                yield part
            elif isinstance(part, ClosedJaxpr):
                yield part.jaxpr


_FUNCTIONS = (checkpoint, with_names, with_name, sources, line_of, inner_jaxprs)

CHECKPOINT_LINES = [getsource(each).splitlines() for each in _FUNCTIONS]
"""The lines of each function of a printed file, in order."""

CHECKPOINT_IMPORTS = (
    "from collections.abc import Callable, Iterator, Mapping",
    "from functools import partial, wraps",
    "from pathlib import PurePath",
    "from typing import Any",
    "",
    "import jax",
    "from jax.ad_checkpoint import checkpoint_name, checkpoint_policies",
    "from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun",
)
"""The imports of these functions."""
