"""The file of a layout for PyTorch."""

from jax.sharding import PartitionSpec

from sdy.passes.python.expressions import Expression, tuple_of
from sdy.passes.python_layouts.file import (
    HOW,
    argument_rules,
    axes_of_dim,
    docstring,
    file_of,
    mapping,
    received_text,
    statement,
    string,
    title,
)
from sdy.passes.python_layouts.layout_specs import LayoutSpecs


def torch_file(specs: LayoutSpecs) -> str:
    """Return a file for PyTorch: shardings by the names of parameters, for `sdy.torch` and for DTensor."""
    rules = argument_rules(specs)
    names = specs.axes.names
    usage = (
        "     sdy.torch.train_step(model, loss, optimizer, mesh=mesh, shardings=shardings(model))\n"
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
                *docstring(title(specs), usage, how, HOW, received_text(specs.received_alone)),
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


_TORCH = '''\
def of_parameter(name):
    """Return the axes of the mesh over which each dimension of a parameter is split."""
    keys = (key for key in SHARDINGS if fnmatchcase(f".{name}", f"*.{key}"))
    return SHARDINGS[next(keys)]


def shardings(model):
    """Return the shardings of the parameters and buffers of a model, as sdy.torch takes them."""
    from jax.sharding import PartitionSpec

    tensors = (*model.named_parameters(), *model.named_buffers())
    return {name: PartitionSpec(*of_parameter(name)) for name, _ in tensors}


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
