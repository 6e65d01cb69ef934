"""What can be chosen: how each argument whose sharding is not given is split over the mesh."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sdy.axes import AxisRef
from sdy.ir.shapes import num_elements, shape_of
from sdy.mesh import Mesh
from sdy.passes.auto.folded_program import FoldedProgram
from sdy.sharding import DimSharding, TensorSharding

_OF_STATE = 1
"""The priority of what splits state: where parameters and data are split over one axis, the data win, and the
parameters are gathered for the computation, as a person means it who shards them fully."""


@dataclass(frozen=True)
class Choice:
    """A choice that arguments share which are equal, as those of the layers of a model are."""

    node: int
    """Their node in the folded program."""
    arguments: tuple[int, ...]
    shape: tuple[int, ...]
    is_state: bool
    """Whether the program gives back their next values."""
    options: tuple[TensorSharding, ...]
    """Not to split them at all, and then the ways to split them over axes that divide their dimensions."""

    def final(self, sharding: TensorSharding | None) -> TensorSharding:
        """What is written where propagation gives `sharding`: closed, with the priority of the options."""
        if sharding is None or sharding.is_fully_replicated:
            return self.options[0]
        priority = _OF_STATE if self.is_state else None
        return replace(
            sharding, dims=tuple([DimSharding(dim.axes, True, priority if dim.axes else None) for dim in sharding.dims])
        )


def find_choices(program: FoldedProgram, mesh_name: str, mesh: Mesh) -> Sequence[Choice]:
    """The choices that there are in a program."""
    choices: list[Choice] = []
    for node, arguments in sorted(program.arguments.items(), key=lambda each: each[1]):
        value = program.values[node]
        if value is None or node in program.snapshot.given or not num_elements(value):
            continue
        shape, is_state = shape_of(value), arguments[0] in program.state
        if not shape:
            continue
        whole = TensorSharding.replicated_closed(mesh_name, len(shape))
        split = _splits(shape, mesh_name, mesh, _OF_STATE if is_state else None)
        choices.append(Choice(node, arguments, shape, is_state, (whole, *split)))
    return choices


def _splits(shape: Sequence[int], mesh_name: str, mesh: Mesh, priority: int | None) -> Iterator[TensorSharding]:
    """Each way to put axes on dimensions that they divide; what is not split stays open."""
    nowhere = len(shape)
    for places in product((nowhere, *range(len(shape))), repeat=len(mesh.axes)):
        axes: list[list[AxisRef]] = [[] for _ in shape]
        for place, name in zip(places, mesh.axis_names, strict=True):
            if place != nowhere:
                axes[place].append(AxisRef(name))
        dims = tuple([DimSharding(tuple(each), False, priority if each else None) for each in axes])
        if any(axes) and all(size % dim.sharded_size(mesh) == 0 for size, dim in zip(shape, dims, strict=True)):
            yield TensorSharding(mesh_name, dims)


Assignment = Mapping[int, TensorSharding]
"""The option taken for each choice, by its node; propagation decides where none is."""
