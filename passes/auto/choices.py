"""What can be chosen: how arguments, and large values in between, are split over the mesh, if that is not given."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, product
from math import prod

from sdy.axes import AxisRef
from sdy.ir.shapes import num_elements, shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedProgram
from sdy.passes.common.argument_names import given_name
from sdy.passes.common.call_graph import main_function
from sdy.passes.common.manual_axes import ManualAxes
from sdy.passes.exporting.update_non_divisible_input_output_shardings import divisible_part_on
from sdy.sharding import DimSharding, TensorSharding

_OF_STATE = 1
"""The priority of what splits state: where parameters and data are split over one axis, the data win, and the
parameters are gathered for the computation, as a person means it who shards them fully."""

_LAYER = re.compile(r"\d+(?=\D*[\[.])")
"""The number of a layer in the name of one of its arrays."""

_TREE = re.compile(r"^(.*\.)?\w+(?=\[)")
"""What a tree is called: arrays of two trees that stand in the same place belong together."""

_LAYERS = 3
"""So many layers, at least, stand for others that are alike: of few each is chosen for itself."""

_OF_RESULTS = 2
"""The priority of what splits values in between, which follow what else there is."""

_MOST_PADDING = 0.25
"""So much of a value in between may be computed in addition, where axes do not divide its dimensions. Arguments and
results of the program have no padding: callers hold their parts."""


@dataclass(frozen=True)
class Choice:
    """A choice that values share which are equal, or alike, as those of the layers of a model are."""

    nodes: Mapping[int, tuple[int, ...]]
    """Their nodes in the folded program, and which arguments each stands for, if any."""
    shape: tuple[int, ...]
    mesh: Mesh
    priority: int | None
    """That of the options: what is of a lower one follows from what others split."""
    options: tuple[TensorSharding, ...]
    """Not to split them at all, and then the ways to split them: arguments over axes that divide their dimensions."""
    origins: tuple[int, ...] = ()
    """The numbers of the results that they are copies of, if they are no arguments."""

    @property
    def node(self) -> int:
        """The node that stands for all."""
        return next(iter(self.nodes))

    @property
    def arguments(self) -> Sequence[int]:
        """The arguments of all nodes."""
        return sorted(chain.from_iterable(self.nodes.values()))

    @property
    def is_state(self) -> bool:
        """Whether the program gives back their next values."""
        return self.priority == _OF_STATE

    def final(self, sharding: TensorSharding | None) -> TensorSharding:
        """What is written where propagation gives `sharding`: closed, with the priority of the options, and of an
        argument without padding."""
        if sharding is not None and not self.origins:
            sharding = divisible_part_on(self.mesh, sharding, self.shape)
        if sharding is None or sharding.is_fully_replicated:
            return self.options[0]
        return replace(
            sharding,
            dims=tuple([DimSharding(dim.axes, True, self.priority if dim.axes else None) for dim in sharding.dims]),
        )


def find_choices(program: FoldedProgram, mesh_name: str, mesh: Mesh) -> Sequence[Choice]:
    """The choices of arguments that there are in a program."""
    choices: list[Choice] = []
    for nodes in _alike(program):
        (value, *_), (arguments, *_) = [program.values[node] for node in nodes], nodes.values()
        assert value is not None
        priority = _OF_STATE if arguments[0] in program.state else None
        options = _options(shape_of(value), mesh_name, mesh, tuple(map(AxisRef, mesh)), priority)
        choices.append(Choice(nodes, shape_of(value), mesh, priority, options))
    return choices


def find_choices_of_results(program: FoldedProgram, mesh_name: str, mesh: Mesh) -> Sequence[Choice]:
    """The choices that there are of results of operations: within a manual computation, of its free axes alone."""
    choices: list[Choice] = []
    manual_axes = ManualAxes(program.module)
    for nodes in _together(program.origins):
        value = program.values[nodes[0]]
        if (
            value is not None
            and num_elements(value)
            and program.alive.counts[:, nodes].any()
            and program.snapshot.given.keys().isdisjoint(nodes)
        ):
            origins = tuple(sorted({number for node in nodes for number in program.origins[node]}))
            free = manual_axes.free_of(value, mesh)
            options = _options(shape_of(value), mesh_name, mesh, free, _OF_RESULTS, _MOST_PADDING)
            choices.append(Choice(dict.fromkeys(nodes, ()), shape_of(value), mesh, _OF_RESULTS, options, origins))
    return choices


def _together(origins: Mapping[int, tuple[int, ...]]) -> Sequence[list[int]]:
    """The nodes of results that are chosen together, as operations of a function that is called in several places have
    a node in each."""
    nodes_of: dict[int, list[int]] = {}  # of each operation, by its number
    for node, numbers in origins.items():
        joined = {id(nodes): nodes for number in numbers if (nodes := nodes_of.get(number)) is not None}
        together = [node, *chain.from_iterable(joined.values())]
        nodes_of.update({number: together for each in together for number in origins[each]})
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
    whole = TensorSharding.replicated_closed(mesh_name, len(shape))
    splits = _splits(shape, mesh_name, axes, priority)
    return whole, *(each for each in splits if _padding(shape, each, mesh) <= most_padding)


def _padding(shape: Sequence[int], sharding: TensorSharding, mesh: Mesh) -> float:
    """How much of a tensor its parts have in addition: none where the axes divide its dimensions."""
    parts = [dim.sharded_size(mesh) for dim in sharding.dims]
    return prod(-(-size // each) * each / size for size, each in zip(shape, parts, strict=True)) - 1


def _alike(program: FoldedProgram) -> Sequence[Mapping[int, tuple[int, ...]]]:
    """The arguments to choose of, by their nodes: all that an optimizer knows of one parameter together, and those of a
    stack's ends with those of the layers in between."""
    main = main_function(program.module)
    found: list[dict[int, tuple[int, ...]]] = []
    called: dict[Hashable, dict[int, tuple[int, ...]]] = {}
    for node, arguments in sorted(program.arguments.items(), key=lambda each: (-len(each[1]), each[1])):
        value = program.values[node]
        if value is None or node in program.snapshot.given or not num_elements(value) or not shape_of(value):
            continue
        first = arguments[0]
        kind = value.type, program.likeness[node], first in program.state
        names = [(*kind, path) for path in _paths(given_name(main.args[first]))]
        together = next((called[name] for name in names if name in called), None)
        if together is None:
            found.append(together := {})
        together[node] = arguments
        for name in names if len(arguments) >= _LAYERS else names[:1]:
            called.setdefault(name, together)
    return sorted(found, key=lambda nodes: min(nodes.values()))


def _paths(name: str) -> Sequence[str]:
    """What an array is called in its tree, `['layers'][3]['kernel']` of `params['layers'][3]['kernel']` and of
    `state[0].mu['layers'][3]['kernel']`, and what in any layer, `['layers'][#]['kernel']`; nothing of other names."""
    path = _TREE.sub("", name)
    return tuple(dict.fromkeys([path, _LAYER.sub("#", path)])) if path.startswith("[") else ()


def _splits(
    shape: Sequence[int], mesh_name: str, axes: Sequence[AxisRef], priority: int | None
) -> Iterator[TensorSharding]:
    """Yield each way to put some of `axes` on dimensions; what is not split stays open."""
    nowhere = len(shape)
    for places in product((nowhere, *range(len(shape))), repeat=len(axes)):
        axes_of_dims: list[list[AxisRef]] = [[] for _ in shape]
        for place, axis in zip(places, axes, strict=True):
            if place != nowhere:
                axes_of_dims[place].append(axis)
        if any(axes_of_dims):
            dims = [DimSharding(tuple(each), False, priority if each else None) for each in axes_of_dims]
            yield TensorSharding(mesh_name, tuple(dims))


Assignment = Mapping[int, TensorSharding]
"""The option taken for each choice, by the node that stands for it; propagation decides where none is."""
