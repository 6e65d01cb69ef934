"""Expert layouts: data parallel, fully sharded, tensor parallel, sequence parallel, and combinations.

The state of a step is its parameters and the optimizer's state, whose next values it returns. Other arguments are data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.auto.choices import Assignment, Choice
from sdy.passes.auto.search import Search
from sdy.sharding import TensorSharding

_SEQUENCE = 1
"""The sequence dimension of a batch of sequences."""


def expert_layouts(choices: Sequence[Choice], mesh: Mesh, search: Search) -> Iterator[tuple[str, Assignment]]:
    """Yield the expert layouts of a program with their names; only the replicated one if it has no state or no data."""
    yield "replicated", {choice.node: choice.options[0] for choice in choices}
    state = [choice for choice in choices if choice.is_state]
    data = [choice for choice in choices if not choice.is_state]
    if not state or not data:
        return
    for axes in _sets_of_axes(mesh):
        over = ", ".join(axes)
        parallel = _with_axes(data, {}, axes, first_dim=True)
        if not parallel:
            continue
        yield f"data parallel over {over}", parallel
        yield f"fully sharded over {over}", {**_with_axes(state, {}, axes), **parallel}
        others = tuple([name for name in mesh.axis_names if name not in axes])
        if others:
            tensor = _tensor_parallel(state, parallel, others, search)
            yield f"data parallel over {over}, tensor parallel over {', '.join(others)}", tensor
            fully = {**tensor, **_with_axes(state, tensor, axes)}
            yield f"fully sharded over {over}, tensor parallel over {', '.join(others)}", fully
            for name, layout in {"data parallel": tensor, "fully sharded": fully}.items():
                if sequences := _sequence_parallel(layout, others, search):
                    name = f"{name} over {over}, tensor and sequence parallel over {', '.join(others)}"
                    yield name, {**layout, **sequences}


def _sets_of_axes(mesh: Mesh) -> Sequence[tuple[str, ...]]:
    """Return all axes, and all but the last."""
    names = mesh.axis_names
    return [names, names[:-1]] if len(names) > 1 else [names]


def _with_axes(
    choices: Sequence[Choice], present: Assignment, axes: tuple[str, ...], first_dim: bool = False
) -> dict[int, TensorSharding]:
    """Return the options that add `axes` to one dimension of each choice.

    The dimension is the first one if `first_dim`, or else the largest divisible one, unsharded dimensions first.
    """
    layout: dict[int, TensorSharding] = {}
    for choice in choices:
        before = present.get(choice.node)
        dim_axes = before.dim_axes if before is not None else ((),) * len(choice.shape)
        largest = sorted(range(len(choice.shape)), key=lambda dim: (bool(dim_axes[dim]), -choice.shape[dim]))
        dims = range(1) if first_dim else largest
        wanted = (option for dim in dims for option in choice.options if _adds(option, before, dim, axes))
        if (option := next(wanted, None)) is not None:
            layout[choice.node] = option
    return layout


def _adds(option: TensorSharding, before: TensorSharding | None, dim: int, axes: tuple[str, ...]) -> bool:
    """Return whether `option` is `before` with `axes` added to dimension `dim`."""
    old = before.dim_axes if before is not None else ((),) * option.rank
    refs = {AxisRef(name) for name in axes}
    return all(
        {*new} == ({*kept} | refs if number == dim else {*kept})
        for number, (new, kept) in enumerate(zip(option.dim_axes, old, strict=True))
    )


def _tensor_parallel(
    state: Sequence[Choice], parallel: Assignment, axes: tuple[str, ...], search: Search
) -> Assignment:
    """Return the best layout that shards state over `axes`, in addition to the data layout `parallel`."""
    refs = {AxisRef(name) for name in axes}
    restricted = [
        replace(choice, options=tuple([option for option in choice.options if {*option.axes()} <= refs]))
        for choice in state
    ]
    return search.descend(search.candidate("tensor parallel", parallel), restricted).assignment


def _sequence_parallel(layout: Assignment, axes: tuple[str, ...], search: Search) -> dict[int, TensorSharding]:
    """Return the options that add `axes` to the sequence dimension of large results of `layout`."""
    shardings = search.shardings(layout)
    sequences: dict[int, TensorSharding] = {}
    for choice in search.choices_of_results(layout):
        option = next((each for each in choice.options if _adds(each, shardings[choice.node], _SEQUENCE, axes)), None)
        if option is not None:
            sequences[choice.node] = option
    return sequences
