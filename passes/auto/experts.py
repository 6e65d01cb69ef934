"""Expert layouts: data parallel, fully sharded, tensor parallel, sequence parallel, and combinations.

The state of a step is its parameters and the optimizer's state, whose next values it returns. Other arguments are data.
Each set of mesh axes can shard the data, and the other axes, or some of the same, the tensors of the model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, starmap
from typing import NamedTuple

from sdy.axes import AxisRef
from sdy.mesh import Mesh
from sdy.passes.auto.choices import Assignment, Choice
from sdy.passes.auto.search import Candidate, Search
from sdy.sharding import TensorSharding

_Axes = tuple[str, ...]

_MOST_PARALLEL = 4
"""Maximum number of sets of axes for the data beside which tensor parallelism is searched."""

_MATRIX_DIMS = {"rows": -2, "columns": -1}
"""The dimensions of the matrices, perhaps stacked, of a model."""

_MATRIX = 2
"""The rank of a matrix."""

_SEQUENCE = 1
"""The sequence dimension of a batch of sequences."""


def expert_layouts(choices: Sequence[Choice], mesh: Mesh, search: Search) -> Iterator[tuple[str, Assignment]]:
    """Yield the expert layouts of a program with their names; only the replicated one if it has no state or no data."""
    yield "replicated", {choice.node: choice.replicated for choice in choices}
    state = [choice for choice in choices if choice.is_state]
    data = [choice for choice in choices if not choice.is_state]
    if not state or not data:
        return
    parallels: list[_DataParallel] = []
    for axes in _sets_of_axes(mesh.axis_names):
        for dim in range(max(len(choice.shape) for choice in data)):
            if parallel := _with_axes(data, {}, axes, [dim]):
                over = f"{', '.join(axes)}{f' in dimension {dim}' if dim else ''}"
                layouts = {
                    f"data parallel over {over}": parallel,
                    f"fully sharded over {over}": {**_with_axes(state, {}, axes), **parallel},
                }
                # Both are estimated precisely: with tensor parallelism, a slow one may become the fastest.
                best = min(starmap(search.candidate, layouts.items()), key=search.rank)
                yield from layouts.items()
                parallels.append(_DataParallel(axes, over, parallel, best))
                yield from _in_another_dim(data, state, parallel, over, dim, mesh)
    with_caches = [*_with_caches(choices, mesh, search)]
    yield from ((each.best.name, each.layout) for each in with_caches)
    searched: list[_Searched] = []
    for data_parallel in (*_best_of_each(parallels, search), *_best_of_each(with_caches, search)):
        for others in _tensor_axes(mesh, data_parallel.axes):
            layouts = [*_with_tensors(choices, state, data_parallel, others, search)]
            yield from layouts
            searched += [_Searched(data_parallel.axes, others, *each) for each in layouts]
    yield from _with_other_axes(choices, mesh, searched, search)


class _Searched(NamedTuple):
    """A layout of data and tensors that was searched."""

    data: _Axes
    tensors: _Axes
    name: str
    layout: Assignment


def _with_other_axes(
    choices: Sequence[Choice], mesh: Mesh, searched: Sequence[_Searched], search: Search
) -> Iterator[tuple[str, Assignment]]:
    """Yield the best layout of data and tensors with other axes in both roles, for the axes that were not searched."""
    apart = [each for each in searched if {*each.data}.isdisjoint(each.tensors)]
    if not apart:
        return
    best = min(apart, key=lambda each: search.rank(search.candidate(each.name, each.layout)))
    for axes in _sets_of_axes(mesh.axis_names):
        others = tuple([each for each in mesh.axis_names if each not in axes])
        if others and axes not in {each.data for each in apart}:
            roles = {frozenset(best.data): axes, frozenset(best.tensors): others}
            roles[frozenset(mesh.axis_names)] = mesh.axis_names
            layout = {
                choice.node: option
                for choice in choices
                if choice.node in best.layout
                and (option := _in_roles(choice, best.layout[choice.node], roles)) is not None
            }
            yield f"{best.name}, with data over {', '.join(axes)}", layout


def _in_roles(choice: Choice, sharding: TensorSharding, roles: Mapping[frozenset[str], _Axes]) -> TensorSharding | None:
    """Return the option that shards each dimension over the axes of the same role as in `sharding`."""
    wanted = [{*roles.get(names, names)} for names in map(_names, sharding.dim_axes)]
    return next((option for option in choice.options if [*map(_names, option.dim_axes)] == wanted), None)


def _names(axes: Iterable[AxisRef]) -> frozenset[str]:
    return frozenset(axis.name for axis in axes)


def _with_caches(choices: Sequence[Choice], mesh: Mesh, search: Search) -> Iterator["_DataParallel"]:
    """Yield the layouts that shard the batch of a decoding step: the first dimension of its tokens and caches.

    The state of such a step is caches alone, as it does not return its parameters.
    """
    sizes = {choice.shape[0] for choice in choices if choice.is_state}
    batch = [choice for choice in choices if choice.shape[0] in sizes]
    if len(sizes) == 1 and any(len(choice.shape) > _MATRIX for choice in batch):
        for axes in _sets_of_axes(mesh.axis_names):
            if layout := _with_axes(batch, {}, axes, [0]):
                over = f"{', '.join(axes)} with caches"
                yield _DataParallel(axes, over, layout, search.candidate(f"data parallel over {over}", layout))


def _in_another_dim(
    data: Sequence[Choice], state: Sequence[Choice], parallel: Assignment, over: str, dim: int, mesh: Mesh
) -> Iterator[tuple[str, Assignment]]:
    """Yield the layouts that shard data as `parallel`, and a dimension behind `dim` over all other axes.

    Images are sharded by batch and by rows, and sequences by batch and by position. Beside images, data of a lower rank
    may have features in that dimension.
    """
    rank = max(len(choice.shape) for choice in data)
    largest = [choice for choice in data if len(choice.shape) == rank]
    for other in range(dim + 1, rank):
        of_all, of_largest = (_with_axes(each, parallel, mesh.axis_names, [other]) for each in (data, largest))
        for which, added in {"": of_all, f" of {rank}": of_largest}.items():
            if added and not (which and added == of_all):
                layout = {**parallel, **added}
                both = f"{over}, and over all others in dimension {other}{which}"
                yield f"data parallel over {both}", layout
                yield f"fully sharded over {both}", {**_with_axes(state, {}, mesh.axis_names), **layout}


@dataclass(frozen=True)
class _DataParallel:
    """A layout of the data."""

    axes: _Axes
    over: str
    """The axes and the dimension as text."""
    layout: Assignment
    best: Candidate
    """The better one of the layouts with replicated and with fully sharded state."""


def _with_tensors(
    choices: Sequence[Choice], state: Sequence[Choice], data: _DataParallel, others: _Axes, search: Search
) -> Iterator[tuple[str, Assignment]]:
    """Yield the layouts that shard data as `data` and the tensors of the model over `others`."""
    along = ", ".join(others)
    tensor = _tensor_parallel(choices, data.layout, others, search)
    layouts = {"tensor parallel": tensor}
    for name, dim in _MATRIX_DIMS.items():
        layouts[name] = {**data.layout, **_with_axes(state, data.layout, others, [dim])}
    for name, layout in layouts.items():
        fully = {**layout, **_with_axes(state, layout, data.axes)}
        for kind, each in {"data parallel": layout, "fully sharded": fully}.items():
            yield f"{kind} over {data.over}, {name} over {along}", each
            if layout is tensor and (sequences := _sequence_parallel(each, others, search)):
                yield f"{kind} over {data.over}, tensor and sequence parallel over {along}", {**each, **sequences}


def _best_of_each(parallels: Sequence[_DataParallel], search: Search) -> Sequence[_DataParallel]:
    """Return the best layouts of data with different axes, the best first."""
    ranked = sorted(parallels, key=lambda each: search.rank(each.best), reverse=True)
    return list({each.axes: each for each in ranked}.values())[::-1][:_MOST_PARALLEL]


def _sets_of_axes(names: Sequence[str]) -> Iterator[_Axes]:
    """Yield the non-empty subsets of axes, the largest first."""
    for count in range(len(names), 0, -1):
        yield from combinations(names, count)


def _tensor_axes(mesh: Mesh, axes: _Axes) -> Iterator[_Axes]:
    """Yield the axes for tensor parallelism beside data over `axes`.

    The other axes are used; if there are none, any that shard the data too, as in expert parallelism.
    """
    others = tuple([name for name in mesh.axis_names if name not in axes])
    return iter([others]) if others else _sets_of_axes(axes)


def _with_axes(
    choices: Sequence[Choice], present: Assignment, axes: _Axes, dims: Sequence[int] | None = None
) -> dict[int, TensorSharding]:
    """Return the options that add those of `axes` that a choice does not use to one dimension of each choice.

    The dimension is the first possible one of `dims`, which count from the end if negative; by default, it is the
    largest divisible one, unsharded ones first.
    """
    layout: dict[int, TensorSharding] = {}
    for choice in choices:
        before = present.get(choice.node)
        dim_axes = before.dim_axes if before is not None else ((),) * len(choice.shape)
        used = {ref.name for refs in dim_axes for ref in refs}
        new = [name for name in axes if name not in used]
        rank = len(choice.shape)
        possible = None if dims is None else [dim % rank for dim in dims if -rank <= dim < rank]
        largest = sorted(range(len(choice.shape)), key=lambda dim: (bool(dim_axes[dim]), -choice.shape[dim]))
        tried = largest if possible is None else possible
        wanted = (option for dim in tried for option in choice.options if _adds(option, before, dim, new))
        if new and (option := next(wanted, None)) is not None:
            layout[choice.node] = option
    return layout


def _adds(option: TensorSharding, before: TensorSharding | None, dim: int, axes: Collection[str]) -> bool:
    """Return whether `option` is `before` with `axes` added to dimension `dim`."""
    old = before.dim_axes if before is not None else ((),) * option.rank
    refs = {AxisRef(name) for name in axes}
    return all(
        {*new} == ({*kept} | refs if number == dim else {*kept})
        for number, (new, kept) in enumerate(zip(option.dim_axes, old, strict=True))
    )


def _tensor_parallel(choices: Sequence[Choice], parallel: Assignment, axes: _Axes, search: Search) -> Assignment:
    """Return the best layout that shards one dimension of some arrays over `axes`, in addition to `parallel`.

    The other arrays are left to propagation, or replicated: propagation finds more, but also shards data where that
    conflicts with `parallel`, as it does if the data use the axes too.
    """
    restricted = [replace(choice, options=_options(choice, parallel.get(choice.node), axes)) for choice in choices]
    replicated = {choice.node: choice.replicated for choice in choices}
    of_data = {ref.name for option in parallel.values() for ref in option.axes()}
    begins = [{**replicated, **parallel}, *([parallel] if of_data.isdisjoint(axes) else [])]
    layouts = [
        search.settled(search.descend(search.candidate("tensor parallel", begin), restricted, sweeps=1))
        for begin in begins
    ]
    return min(layouts, key=search.rank).assignment


def _options(choice: Choice, before: TensorSharding | None, axes: _Axes) -> tuple[TensorSharding, ...]:
    """Return the options of a choice that add `axes` to one dimension of `before`, and `before` itself."""
    added = [
        option for option in choice.options if any(_adds(option, before, dim, axes) for dim in range(len(choice.shape)))
    ]
    return (*([] if before is None else [before]), *added)


def _sequence_parallel(layout: Assignment, axes: _Axes, search: Search) -> dict[int, TensorSharding]:
    """Return the options that add `axes` to the sequence dimension of large results of `layout`."""
    shardings = search.shardings(layout)
    sequences: dict[int, TensorSharding] = {}
    for choice in search.choices_of_results(layout):
        option = next((each for each in choice.options if _adds(each, shardings[choice.node], _SEQUENCE, axes)), None)
        if option is not None:
            sequences[choice.node] = option
    return sequences
