"""The layout of program on 8 devices: data=4, model=2.

     arguments = (...)
     in_shardings = shardings(arguments, mesh)
     results = jax.eval_shape(function, *arguments)
     out_shardings = shardings(results, mesh, RESULTS)
     jax.jit(function, in_shardings=in_shardings, out_shardings=out_shardings)

A rule is for the arrays whose path ends as it says, the first one that matches; *
stands for any text, and the name of an argument is the first key of its paths.

Under jax.jit, a device receives 1.50 times the bytes that it receives under sdy:
704,643,072, not 469,762,048.
"""

from fnmatch import fnmatchcase

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.tree_util import keystr, tree_map_with_path

mesh = jax.make_mesh((4, 2), ("data", "model"), (AxisType.Auto,) * 2)

NAMES = ("0", "1", "2", "3", "4", "5")

ARGUMENTS = {
    "*": P(("data", "model")),
}

RESULTS = {
    "*": P(("data", "model")),
}


def rule_for(path, rules):
    """Return the first rule whose pattern matches the end of a path."""
    where = "/" + keystr(path, simple=True, separator="/")
    where = where.removesuffix("/value") or where
    return next(rule for key, rule in rules.items() if fnmatchcase(where, f"*/{key}"))


def shardings(tree, mesh=mesh, rules=ARGUMENTS):
    """Return the tree of shardings for the tuple of all arguments, or for one of them."""

    def sharding(path, leaf):
        return NamedSharding(mesh, rule_for(path, rules))

    if rules is not RESULTS and type(tree) is tuple and len(tree) == len(NAMES):
        named = tree_map_with_path(sharding, dict(zip(NAMES, tree, strict=True)))
        return tuple(named[name] for name in NAMES)
    return tree_map_with_path(sharding, tree)
