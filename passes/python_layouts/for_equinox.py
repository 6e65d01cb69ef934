"""The file of a layout for Equinox."""

from sdy.passes.python_layouts.file import (
    HOW,
    RULE_FOR,
    argument_rules,
    docstring,
    file_of,
    mesh_lines,
    received_text,
    rule_lines,
    title,
)
from sdy.passes.python_layouts.layout_specs import LayoutSpecs


def equinox_file(specs: LayoutSpecs) -> str:
    """Return a file for Equinox: a tree of shardings for the arrays of a model, and None for everything else."""
    usage = "     model = shard(model)\n     eqx.filter_jit(function)(model)"
    return file_of(
        (
            [
                *docstring(title(specs), usage, HOW, received_text(specs.received_alone)),
                "",
                "from fnmatch import fnmatchcase",
                "",
                "import equinox as eqx",
                "import jax",
                "from jax.sharding import AxisType, NamedSharding",
                "from jax.sharding import PartitionSpec as P",
                "from jax.tree_util import keystr, tree_map_with_path",
                "",
                *mesh_lines(specs),
                "",
                *rule_lines("ARGUMENTS", argument_rules(specs)),
            ],
            RULE_FOR.splitlines(),
            _FILTER_TREE.splitlines(),
            _SHARD.splitlines(),
        )
    )


_FILTER_TREE = '''\
def filter_tree(model, mesh=mesh):
    """Return the tree of shardings for the arrays of a model, with None for the rest."""

    def sharding(path, leaf):
        return NamedSharding(mesh, rule_for(path, ARGUMENTS))

    return tree_map_with_path(sharding, eqx.filter(model, eqx.is_array))
'''

_SHARD = '''\
def shard(model, mesh=mesh):
    """Return a model whose arrays are on the devices of the mesh."""
    arrays, others = eqx.partition(model, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, filter_tree(model, mesh)), others)
'''
