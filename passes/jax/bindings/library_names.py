"""Names of arguments in functions that libraries jit, such as `nnx.jit` and `eqx.filter_jit`.

These libraries give `jax.jit` the arrays of a model as flat lists, and JAX names the arguments after them:
`net.states[0][5]` of Flax, `dynamic_nodonate['first'][4]` of Equinox. The names of the leaves in the caller's
arguments, `net.blocks[0].up.kernel`, are found by tracing a call of the function: its equation has the outer values as
operands.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp, NameLoc, StringAttr

from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.jax_internals import names_of_arguments


def rename_arguments(module: ModuleOp, names: Mapping[str, str]) -> None:
    """Rename the arguments of the main function, in place; a name that is not in `names` stays."""
    for argument in main_function(module).args:
        location = argument.location
        if isinstance(location, NameLoc) and (new := names.get(given_name(argument))):
            argument.location = NameLoc(StringAttr(new), location.location)


def names_in_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Mapping[str, str]:
    """Return the path of each array in the arguments of a call, by the name that JAX gives it in the lowered program.

    Names are all that depends on it: a function that cannot be traced again has none.
    """
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    variables = {
        path
        for path, node in jax.tree_util.tree_leaves_with_path((args, kwargs), is_leaf=_is_variable)
        if _is_variable(node)
    }
    leaves = [leaf for _, leaf in paths]
    arrays = [index for index, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]

    def call(traced: Sequence[Any]) -> None:
        changed = [*leaves]
        for index, array in zip(arrays, traced, strict=True):
            changed[index] = array
        new_args, new_kwargs = jax.tree_util.tree_unflatten(tree, changed)
        function(*new_args, **new_kwargs)

    try:
        jaxpr = jax.make_jaxpr(call)([leaves[index] for index in arrays])
        by_position = names_of_arguments(jaxpr)
    except Exception:
        return {}
    parameters = [*inspect.signature(function).parameters]
    found = {inner: paths[arrays[index]][0] for inner, index in by_position.items()}
    return {inner: _path(path[:-1] if path[:-1] in variables else path, parameters) for inner, path in found.items()}


def _is_variable(node: Any) -> bool:
    """Return whether `node` is a variable of Flax, a tree with one array, its value."""
    return any(base.__module__.startswith("flax.nnx") and base.__name__ == "Variable" for base in type(node).__mro__)


def _path(keys: Sequence[Any], parameters: Sequence[str]) -> str:
    """Format the path of a leaf in `(args, kwargs)` as `net.blocks[0].up.kernel`."""
    part, first, *rest = keys
    name = first.key if part.idx else parameters[first.idx] if first.idx < len(parameters) else f"[{first.idx}]"
    return f"{name}{jax.tree_util.keystr(tuple(rest))}"
