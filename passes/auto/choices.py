"""Search space of the automatic partitioner: the candidate shardings of arguments and of intermediate values."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from math import prod

from sdy.axes import AxisRef
from sdy.ir.shapes import num_elements, shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import LAYERS, FoldedProgram
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.exporting.update_non_divisible_input_output_shardings import divisible_part_on
from sdy.sharding import DimSharding, TensorSharding

_OF_STATE = 1
"""Propagation priority of shardings of state. If parameters and data are sharded over the same axis, the sharding of
the data wins, and parameters are all-gathered for the computation, as in fully sharded data parallelism."""

_LAYER = re.compile(r"\d+(?=\D*[\[.])")
"""Matches the number of a layer in the name of one of its arrays."""

_TREE = re.compile(r"^(.*\.)?\w+(?=\[)")
"""Matches the name of a pytree. Arrays at the same path of two trees share a choice."""

_OF_RESULTS = 2
"""Propagation priority of shardings of intermediate values: below all others."""

_MOST_PADDING = 0.25
"""Maximum padding of an intermediate value, relative to its size. Arguments and results of the program are not padded,
since callers hold their shards."""


@dataclass(frozen=True)
class Choice:
    """A decision variable: equal or similar values, such as those of the layers of a model, that get one sharding."""

    nodes: Mapping[int, tuple[int, ...]]
    """The nodes of the values in the folded program, with the indices of the arguments that each stands for."""
    shape: tuple[int, ...]
    mesh: Mesh
    priority: int | None
    """The lowest propagation priority of the options."""
    replicated: TensorSharding
    """The replicated sharding."""
    options: tuple[TensorSharding, ...]
    """The candidate shardings. The axes of an argument divide its dimensions.

    A state argument has each sharding twice, of a lower priority than data and of the same priority: as in fully
    sharded data parallelism, and as in tensor parallelism.
    """
    origins: tuple[int, ...] = ()
    """For intermediate values, their numbers in `choosable_results` of the original module."""

    @property
    def node(self) -> int:
        """The node that identifies the choice."""
        return next(iter(self.nodes))

    @property
    def arguments(self) -> Sequence[int]:
        """The indices of the arguments of all nodes."""
        return sorted(chain.from_iterable(self.nodes.values()))

    @property
    def is_state(self) -> bool:
        """True if the values are state: arguments whose next values the program returns."""
        return self.priority == _OF_STATE

    def final(self, sharding: TensorSharding | None, option: TensorSharding | None) -> TensorSharding:
        """Return the sharding to write into the module if propagation with `option` results in `sharding`.

        It is closed and has the priority of `option`; that of an argument has only axes that divide its dimensions.
        """
        if sharding is not None and not self.origins:
            sharding = divisible_part_on(self.mesh, sharding, self.shape)
        if sharding is None or sharding.is_fully_replicated:
            return self.replicated
        chosen_dims = () if option is None else option.dims
        return with_priority(sharding, next((dim.priority for dim in chosen_dims if dim.axes), self.priority))


def with_priority(sharding: TensorSharding, priority: int | None) -> TensorSharding:
    """Return a sharding that is closed and of one priority."""
    dims = [DimSharding(dim.axes, True, priority if dim.axes else None) for dim in sharding.dims]
    return replace(sharding, dims=tuple(dims))


def find_choices(program: FoldedProgram, mesh_name: str, mesh: Mesh) -> Sequence[Choice]:
    """Return the choices of the arguments of a program."""
    choices: list[Choice] = []
    for nodes in _similar_arguments(program):
        (value, *_), (arguments, *_) = [program.values[node] for node in nodes], nodes.values()
        assert value is not None
        priority = _OF_STATE if arguments[0] in program.state else None
        axes = tuple(map(AxisRef, mesh))
        options = _options(shape_of(value), mesh_name, mesh, axes, priority)
        if priority is not None:
            options = (*options, *_options(shape_of(value), mesh_name, mesh, axes, None)[1:])
        choices.append(Choice(nodes, shape_of(value), mesh, priority, options[0], options))
    return choices


def find_choices_of_results(program: FoldedProgram, mesh_name: str, mesh: Mesh) -> Sequence[Choice]:
    """Return the choices of results of operations; within a manual computation, over its free axes only."""
    choices: list[Choice] = []
    manual_axes = ManualAxes(program.module)
    for nodes in _connected_nodes(program.origins):
        value = program.values[nodes[0]]
        if (
            value is not None
            and num_elements(value)
            and not program.alive.materialized.isdisjoint(nodes)
            and program.snapshot.initial.keys().isdisjoint(nodes)
        ):
            origins = tuple(sorted({number for node in nodes for number in program.origins[node]}))
            free = manual_axes.free_of(value, mesh)
            options = _options(shape_of(value), mesh_name, mesh, free, _OF_RESULTS, _MOST_PADDING)
            of_nodes = dict.fromkeys(nodes, ())
            choices.append(Choice(of_nodes, shape_of(value), mesh, _OF_RESULTS, options[0], options, origins))
    return choices


def _connected_nodes(origins: Mapping[int, tuple[int, ...]]) -> Sequence[list[int]]:
    """Group nodes that are copies of the same original result, as an inlined function has one node per call."""
    nodes_of: dict[int, list[int]] = {}  # by the number of the original result
    for node, numbers in origins.items():
        groups = {id(nodes): nodes for number in numbers if (nodes := nodes_of.get(number)) is not None}
        merged = [node, *chain.from_iterable(groups.values())]
        nodes_of.update({number: merged for each in merged for number in origins[each]})
    return [sorted(nodes) for nodes in {id(nodes): nodes for nodes in nodes_of.values()}.values()]


@lru_cache(2**10)
def _options(
    shape: tuple[int, ...],
    mesh_name: str,
    mesh: Mesh,
    axes: tuple[AxisRef, ...],
    priority: int | None,
    most_padding: float = 0.0,
) -> tuple[TensorSharding, ...]:
    """Return the replicated sharding, then all others with at most that padding."""
    replicated = TensorSharding.replicated_closed(mesh_name, len(shape))
    shardings = _shardings(shape, mesh_name, axes, priority)
    return replicated, *(each for each in shardings if _padding(shape, each, mesh) <= most_padding)


def _padding(shape: Sequence[int], sharding: TensorSharding, mesh: Mesh) -> float:
    """Return the padding of a tensor relative to its size."""
    counts = [dim.sharded_size(mesh) for dim in sharding.dims]
    return prod(-(-size // count) * count / size for size, count in zip(shape, counts, strict=True)) - 1


def _similar_arguments(program: FoldedProgram) -> Sequence[Mapping[int, tuple[int, ...]]]:
    """Group the nodes of arguments without a sharding that share a choice.

    A parameter and its optimizer state are one group, and so are corresponding parameters of the first, the last and
    the layers in between.
    """
    main = main_function(program.module)
    groups: list[dict[int, tuple[int, ...]]] = []
    group_of: dict[Hashable, dict[int, tuple[int, ...]]] = {}
    for node, arguments in sorted(program.arguments.items(), key=lambda each: (-len(each[1]), each[1])):
        value = program.values[node]
        if value is None or node in program.snapshot.initial or not num_elements(value) or not shape_of(value):
            continue
        first = arguments[0]
        kind = value.type, program.likeness[node], first in program.state
        names = [(*kind, path) for path in _paths(given_name(main.args[first]))]
        group = next((group_of[name] for name in names if name in group_of), None)
        if group is None:
            groups.append(group := {})
        group[node] = arguments
        for name in names if len(arguments) >= LAYERS else names[:1]:
            group_of.setdefault(name, group)
    return sorted(groups, key=lambda nodes: min(nodes.values()))


def _paths(name: str) -> Sequence[str]:
    """Return the path of an array in its pytree, and the same path with the layer number replaced by `#`.

    Both `params['layers'][3]['kernel']` and `state[0].mu['layers'][3]['kernel']` have the paths
    `['layers'][3]['kernel']` and `['layers'][#]['kernel']`. A name that is not of a pytree has none.
    """
    path = _TREE.sub("", name)
    return tuple(dict.fromkeys([path, _LAYER.sub("#", path)])) if path.startswith("[") else ()


def _shardings(
    shape: Sequence[int], mesh_name: str, axes: Sequence[AxisRef], priority: int | None
) -> Iterator[TensorSharding]:
    """Yield each assignment of some of `axes` to dimensions, with all dimensions closed."""
    nowhere = len(shape)
    for places in product((nowhere, *range(len(shape))), repeat=len(axes)):
        axes_of_dims: list[list[AxisRef]] = [[] for _ in shape]
        for place, axis in zip(places, axes, strict=True):
            if place != nowhere:
                axes_of_dims[place].append(axis)
        if any(axes_of_dims):
            dims = [DimSharding(tuple(each), True, priority if each else None) for each in axes_of_dims]
            yield TensorSharding(mesh_name, tuple(dims))


Assignment = Mapping[int, TensorSharding]
"""The selected option of each choice, by the node of the choice; propagation decides the choices without one."""
