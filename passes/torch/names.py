"""The shardings of a model's tensors, given by patterns of their names.

    {"*.q_proj.weight": P("model", None), "*": sdy.AUTO}

A pattern is one of `fnmatch`: `*` stands for anything, `?` for one letter. The first that matches a name counts. What
none matches is whole on each device.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeAlias

from jax.sharding import PartitionSpec

from sdy.mesh import Mesh
from sdy.passes.jax.device_mesh import AnyMesh
from sdy.passes.jax.planned import Auto

Given: TypeAlias = PartitionSpec | Auto
"""How a tensor is split, or that the compiler is to choose."""

Patterns: TypeAlias = Mapping[str, Given] | Auto | None

_WHOLE = PartitionSpec()


def axes_of(mesh: AnyMesh | Mesh) -> dict[str, int]:
    """The axes of a mesh, with their sizes."""
    return dict(mesh.axes if isinstance(mesh, Mesh) else mesh.shape)


def shardings_of(
    patterns: Patterns, names: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[int]], axes: Mapping[str, int]
) -> dict[str, Given]:
    """What each tensor is given, by its first name.

    `names` has all names of each tensor, more than one where modules share it, and `shapes` its shape, both by the
    first name; `axes` are the mesh's, with their sizes. `Auto` for the patterns is that for all tensors. Raises
    ValueError, naming the pattern or the tensor, for a pattern that says nothing of any tensor, for two names of one
    tensor that are given different shardings, and for a sharding that a tensor cannot have.
    """
    given_by = {"*": patterns} if isinstance(patterns, Auto) else dict(patterns or {})
    first_match = {
        name: next((pattern for pattern in given_by if fnmatchcase(name, pattern)), None)
        for all_names in names.values()
        for name in all_names
    }
    for pattern in given_by:
        if pattern not in first_match.values():
            raise ValueError(_unused(pattern, given_by, first_match))
    found = {first: _given_to(all_names, first_match, given_by) for first, all_names in names.items()}
    for name, given in found.items():
        if isinstance(given, PartitionSpec):
            _check(name, given, shapes[name], axes)
    return found


def split_alike(given: Given, shape: Sequence[int], other: Sequence[int]) -> Given:
    """What is given to a tensor of shape `other` that an optimizer keeps for one of `shape`, which has `given`.

    It is split along those dimensions that have the same size, or is whole where it has others.
    """
    if isinstance(given, Auto):
        return given
    if len(shape) != len(other):
        return _WHOLE
    return PartitionSpec(*(axes if shape[dim] == other[dim] else None for dim, axes in enumerate(given)))


def _given_to(names: Iterable[str], first_match: Mapping[str, str | None], given_by: Mapping[str, Given]) -> Given:
    matches = {name: pattern for name in names if (pattern := first_match[name]) is not None}
    choices = {name: given_by[pattern] for name, pattern in matches.items()}
    if len(set(choices.values())) > 1:
        told = ", ".join(f"{name} is given {given} by {matches[name]!r}" for name, given in choices.items())
        raise ValueError(f"one tensor has several names, which are to be split alike: {told}")
    return next(iter(choices.values()), _WHOLE)


def _unused(pattern: str, given_by: Mapping[str, Given], first_match: Mapping[str, str | None]) -> str:
    taken_by = next((first for name, first in first_match.items() if fnmatchcase(name, pattern)), None)
    if taken_by is not None:
        return (
            f"the pattern {pattern!r} says nothing: {taken_by!r} stands before it, and matches first; change the order"
        )
    near = get_close_matches(pattern, first_match, n=3, cutoff=0.3)
    told = f"near it are {', '.join(near)}" if near else f"there are {', '.join([*first_match][:3])}"
    return f"the pattern {pattern!r} matches no parameter or buffer of the model; {told}"


def _check(name: str, spec: PartitionSpec, shape: Sequence[int], axes: Mapping[str, int]) -> None:
    """Raise ValueError where a tensor of this name and shape cannot be split so over a mesh with these axes."""
    if len(spec) > len(shape):
        raise ValueError(f"{name} is given {spec}, of {len(spec)} dimensions, but has the shape {tuple(shape)}")
    for dim, entry in enumerate(spec):
        parts = 1
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            if axis not in axes:
                raise ValueError(f"{name} is given {spec}, but the mesh has no axis {axis!r}; it has {', '.join(axes)}")
            parts *= axes[axis]
        if shape[dim] % parts:
            raise ValueError(
                f"{name} is given {spec}, but dimension {dim}, of {shape[dim]}, has no {parts} equal parts"
            )
