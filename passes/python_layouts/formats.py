"""The formats of the file of a layout."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from jax.sharding import PartitionSpec

from sdy.passes.python.expressions import Expression, list_of, tuple_of
from sdy.passes.python_layouts.file import (
    argument_rules,
    axes_of_dim,
    docstring,
    file_of,
    mapping,
    mesh_lines,
    received_text,
    result_rules,
    rule_lines,
    sequence,
    shown_mesh,
    statement,
    string,
)
from sdy.passes.python_layouts.layout_specs import LayoutSpecs

_LONGEST = 60
"""The length of a list of arguments in a docstring; a longer one is left out."""

_HOW = (
    "A rule is for the arrays whose path ends as it says, the first one that matches; * "
    "stands for any text, and the name of an argument is the first key of its paths."
)


def jax_file(specs: LayoutSpecs) -> str:
    """Return a file for `jax.jit`: the mesh, the rules of arguments and results, and `shardings`."""
    names = specs.argument_names
    shown = ", ".join(name if name.isidentifier() else f"argument_{index}" for index, name in enumerate(names))
    shown = "..." if len(shown) > _LONGEST else f"{shown}," if len(names) == 1 else shown
    return file_of(
        (
            [
                *docstring(
                    _title(specs),
                    f"     arguments = ({shown})\n"
                    "     in_shardings = shardings(arguments, mesh)\n"
                    "     results = jax.eval_shape(function, *arguments)\n"
                    "     out_shardings = shardings(results, mesh, RESULTS)\n"
                    "     jax.jit(function, in_shardings=in_shardings, out_shardings=out_shardings)",
                    _HOW,
                    received_text(specs),
                    *_constraints(specs),
                ),
                "",
                "from fnmatch import fnmatchcase",
                "",
                "import jax",
                "from jax.sharding import AxisType, NamedSharding",
                "from jax.sharding import PartitionSpec as P",
                "from jax.tree_util import keystr, tree_map_with_path",
                "",
                *mesh_lines(specs),
                "",
                *statement("NAMES = ", tuple_of(map(string, names)), 0),
                "",
                *rule_lines("ARGUMENTS", argument_rules(specs)),
                "",
                *rule_lines("RESULTS", result_rules(specs)),
            ],
            _SHARDINGS.splitlines(),
        )
    )


def _constraints(specs: LayoutSpecs) -> Iterator[str]:
    if specs.constraints:
        yield "sdy.auto also chose shardings of operations' results; write them with jax.lax.with_sharding_constraint:"
        yield "\n".join(f"     {each.name}: {each.spec}" for each in specs.constraints)


_SHARDINGS = '''\
def shardings(tree, mesh=mesh, rules=ARGUMENTS):
    """Return the tree of shardings for the tuple of all arguments, or for one of them."""

    def sharding(path, leaf):
        where = "/" + keystr(path, simple=True, separator="/").removesuffix("/value")
        keys = (key for key in rules if fnmatchcase(where, f"*/{key}"))
        return NamedSharding(mesh, rules[next(keys)])

    if rules is not RESULTS and type(tree) is tuple and len(tree) == len(NAMES):
        named = tree_map_with_path(sharding, dict(zip(NAMES, tree, strict=True)))
        return tuple(named[name] for name in NAMES)
    return tree_map_with_path(sharding, tree)
'''


def flax_file(specs: LayoutSpecs) -> str:
    """Return a file for Flax: names of logical axes by path, and the rules from them to axes of the mesh."""
    usage = (
        "     rules = LOGICAL_AXIS_RULES\n     flax.linen.logical_to_mesh_sharding(logical_axes(params), mesh, rules)"
    )
    how = "The program does not have the names of logical axes: each is named after its axes of the mesh."
    return _logical_file(specs, usage, how, _pairs)


def maxtext_file(specs: LayoutSpecs) -> str:
    """Return a file for MaxText: `mesh_axes` and `logical_axis_rules` of its configuration, and `logical_axes`."""
    usage = (
        '     config = {"mesh_axes": MESH_AXES, "logical_axis_rules": LOGICAL_AXIS_RULES}\n'
        "     flax.linen.logical_to_mesh_sharding(logical_axes(params), mesh, LOGICAL_AXIS_RULES)"
    )
    how = (
        "The program does not have MaxText's names of logical axes, such as embed: each is named after its axes of the "
        "mesh. Replace them by those of the layers."
    )
    return _logical_file(specs, usage, how, _lists)


def _pairs(rules: Mapping[str, Sequence[str]], specs: LayoutSpecs) -> Iterator[str]:
    values = {name: string(axes[0]) if len(axes) == 1 else tuple_of(map(string, axes)) for name, axes in rules.items()}
    yield from sequence("LOGICAL_AXIS_RULES", "()", [tuple_of([string(name), value]) for name, value in values.items()])


def _lists(rules: Mapping[str, Sequence[str]], specs: LayoutSpecs) -> Iterator[str]:
    yield from statement("MESH_AXES = ", list_of(map(string, specs.axes.names)), 0)
    yield ""
    listed = [list_of([string(name), list_of(map(string, axes))]) for name, axes in rules.items()]
    yield from sequence("LOGICAL_AXIS_RULES", "[]", listed)


def _logical_file(
    specs: LayoutSpecs,
    usage: str,
    how: str,
    written: Callable[[Mapping[str, Sequence[str]], LayoutSpecs], Iterator[str]],
) -> str:
    rules = argument_rules(specs)
    entries = dict.fromkeys(entry for each in rules.values() for entry in each if entry is not None)
    axes = {_logical_name(entry): (entry,) if isinstance(entry, str) else entry for entry in entries}
    logical = {
        pattern: PartitionSpec(*(None if entry is None else _logical_name(entry) for entry in each))
        for pattern, each in rules.items()
    }
    return file_of(
        (
            [
                *docstring(_title(specs), usage, how, _HOW, received_text(specs)),
                "",
                "from fnmatch import fnmatchcase",
                "",
                *_imports(specs, "AxisType"),
                "from jax.sharding import PartitionSpec as P",
                "from jax.tree_util import keystr, tree_map_with_path",
                "",
                *mesh_lines(specs),
                "",
                *written(axes, specs),
                "",
                *statement("NAMES = ", tuple_of(map(string, specs.argument_names)), 0),
                "",
                *rule_lines("LOGICAL_AXES", logical),
            ],
            _LOGICAL_AXES.splitlines(),
        )
    )


def _logical_name(entry: str | tuple[str, ...]) -> str:
    return "over_" + ("_".join(entry) if isinstance(entry, tuple) else entry)


def equinox_file(specs: LayoutSpecs) -> str:
    """Return a file for Equinox: a tree of shardings for the arrays of a model, and None for everything else."""
    usage = "     model = shard(model)\n     eqx.filter_jit(function)(model)"
    return file_of(
        (
            [
                *docstring(_title(specs), usage, _HOW, received_text(specs)),
                "",
                "from fnmatch import fnmatchcase",
                "",
                "import equinox as eqx",
                *_imports(specs, "AxisType, NamedSharding"),
                "from jax.sharding import PartitionSpec as P",
                "from jax.tree_util import keystr, tree_map_with_path",
                "",
                *mesh_lines(specs),
                "",
                *rule_lines("ARGUMENTS", argument_rules(specs)),
            ],
            _FILTER_TREE.splitlines(),
            _SHARD.splitlines(),
        )
    )


def torch_file(specs: LayoutSpecs) -> str:
    """Return a file for PyTorch: shardings by the names of parameters, for `sdy.torch` and for DTensor."""
    rules = argument_rules(specs)
    names = specs.axes.names
    usage = (
        "     sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings=shardings())\n"
        '     device_mesh = init_device_mesh("cuda", MESH_SHAPE, mesh_dim_names=MESH_NAMES)\n'
        "     distribute_module(model, device_mesh, partition(model))"
    )
    plan = {pattern: style for pattern, each in rules.items() if (style := _style(pattern, each))}
    how = (
        "PARALLELIZE_PLAN has the weights of linear layers that are split along one dimension, for parallelize_module: "
        "colwise for ColwiseParallel, rowwise for RowwiseParallel, and the axis of the mesh."
    )
    return file_of(
        (
            [
                *docstring(_title(specs), usage, how, _HOW, received_text(specs)),
                "",
                "from fnmatch import fnmatchcase",
                "",
                *statement("MESH_SHAPE = ", tuple_of(map(str, specs.axes.sizes)), 0),
                *statement("MESH_NAMES = ", tuple_of(map(string, names)), 0),
                "",
                "# The dimensions of a parameter over the axes of the mesh.",
                *mapping(
                    "SHARDINGS",
                    ((pattern.replace("/", "."), tuple_of(map(axes_of_dim, each))) for pattern, each in rules.items()),
                ),
                "",
                *mapping("PARALLELIZE_PLAN", plan.items()),
            ],
            _TORCH.splitlines(),
        )
    )


def _style(pattern: str, spec: PartitionSpec) -> Expression | None:
    """Return how `parallelize_module` splits a linear layer with this weight, or None if it is not split so."""
    split = [(dim, entry) for dim, entry in enumerate(spec) if entry is not None]
    if len(split) != 1 or not pattern.endswith("weight") or not isinstance(split[0][1], str):
        return None
    (dim, axis) = split[0]
    return tuple_of([string("rowwise" if dim else "colwise"), string(axis)])


def _title(specs: LayoutSpecs) -> str:
    return f"The layout of {specs.name} on {specs.axes.mesh.size} devices: {shown_mesh(specs)}."


def _imports(specs: LayoutSpecs, names: str) -> Iterator[str]:
    yield "import jax"
    yield f"from jax.sharding import {names}"


_LOGICAL_AXES = '''\
def logical_axes(tree):
    """Return the tree of logical axes for the tuple of all arguments, or for one of them."""

    def axes(path, leaf):
        where = "/" + keystr(path, simple=True, separator="/").removesuffix("/value")
        keys = (key for key in LOGICAL_AXES if fnmatchcase(where, f"*/{key}"))
        return LOGICAL_AXES[next(keys)]

    if type(tree) is tuple and len(tree) == len(NAMES):
        named = tree_map_with_path(axes, dict(zip(NAMES, tree, strict=True)))
        return tuple(named[name] for name in NAMES)
    return tree_map_with_path(axes, tree)
'''

_FILTER_TREE = '''\
def filter_tree(model, mesh=mesh):
    """Return the tree of shardings for the arrays of a model, with None for the rest."""

    def sharding(path, leaf):
        where = "/" + keystr(path, simple=True, separator="/")
        keys = (key for key in ARGUMENTS if fnmatchcase(where, f"*/{key}"))
        return NamedSharding(mesh, ARGUMENTS[next(keys)])

    return tree_map_with_path(sharding, eqx.filter(model, eqx.is_array))
'''

_SHARD = '''\
def shard(model, mesh=mesh):
    """Return a model whose arrays are on the devices of the mesh."""
    arrays, others = eqx.partition(model, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, filter_tree(model, mesh)), others)
'''

_TORCH = '''\
def of_parameter(name):
    """Return the axes of the mesh over which each dimension of a parameter is split."""
    keys = (key for key in SHARDINGS if fnmatchcase(f".{name}", f"*.{key}"))
    return SHARDINGS[next(keys)]


def shardings():
    """Return the patterns of names that sdy.torch takes."""
    from jax.sharding import PartitionSpec

    return {f"*{key}": PartitionSpec(*spec) for key, spec in SHARDINGS.items()}


def placements(name):
    """Return the placements of a parameter along the axes of a DeviceMesh."""
    from torch.distributed.tensor import Replicate, Shard

    by_axis = {}
    for dim, entry in enumerate(of_parameter(name)):
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            by_axis[axis] = Shard(dim)
    return [by_axis.get(axis, Replicate()) for axis in MESH_NAMES]


def partition(model):
    """Return the partition function that distribute_module takes."""
    from torch.distributed.tensor import distribute_tensor
    from torch.nn import Parameter

    names = {id(module): name for name, module in model.named_modules()}

    def split(_, module, device_mesh):
        for key, parameter in list(module.named_parameters(recurse=False)):
            name = f"{names[id(module)]}.{key}".lstrip(".")
            tensor = distribute_tensor(parameter, device_mesh, placements(name))
            module.register_parameter(key, Parameter(tensor))

    return split
'''

FORMATS: Mapping[str, Callable[[LayoutSpecs], str]] = {
    "jax": jax_file,
    "flax": flax_file,
    "maxtext": maxtext_file,
    "equinox": equinox_file,
    "torch": torch_file,
}
"""The function that prints each format."""
