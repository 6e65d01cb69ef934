"""Shardings of a model's tensors by name patterns.

    {"*.q_proj.weight": P("model", None), "*": sdy.AUTO}

Patterns are those of `fnmatch`: `*` matches any text, `?` one character. The first pattern that matches a name applies;
tensors that no pattern matches are replicated.
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
"""The sharding of a tensor, or `sdy.AUTO` to let the compiler choose."""

Patterns: TypeAlias = Mapping[str, Given] | Auto | None

_WHOLE = PartitionSpec()


def axes_of(mesh: AnyMesh | Mesh) -> dict[str, int]:
    """Return the axes of a mesh with their sizes."""
    return dict(mesh.axes if isinstance(mesh, Mesh) else mesh.shape)


def shardings_of(
    patterns: Patterns, names: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[int]], axes: Mapping[str, int]
) -> dict[str, Given]:
    """Return the sharding of each tensor, by its first name.

    Args:
        patterns: Shardings by name pattern; `sdy.AUTO` applies to all tensors.
        names: All names of each tensor, several if modules share it, by the first name.
        shapes: The shape of each tensor, by the first name.
        axes: The axes of the mesh with their sizes.

    Raises:
        ValueError: A pattern applies to no tensor, two names of one tensor have different shardings, or a sharding does
            not fit a tensor. The message names the pattern or the tensor.
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
    by_first_name = {first: _given_to(all_names, first_match, given_by) for first, all_names in names.items()}
    for name, given in by_first_name.items():
        if isinstance(given, PartitionSpec):
            _check(name, given, shapes[name], axes)
    return by_first_name


def split_alike(given: Given, shape: Sequence[int], other: Sequence[int]) -> Given:
    """Return the sharding of an optimizer's tensor of shape `other` for a parameter of `shape` with sharding `given`.

    It is sharded along the dimensions whose sizes are equal, and replicated if the ranks differ.
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
        listed = ", ".join(f"{name} is given {given} by {matches[name]!r}" for name, given in choices.items())
        raise ValueError(f"one tensor has several names with different shardings: {listed}")
    return next(iter(choices.values()), _WHOLE)


def _unused(pattern: str, given_by: Mapping[str, Given], first_match: Mapping[str, str | None]) -> str:
    earlier = next((first for name, first in first_match.items() if fnmatchcase(name, pattern)), None)
    if earlier is not None:
        return f"the pattern {pattern!r} has no effect: {earlier!r} comes before it and matches first; change the order"
    matches = get_close_matches(pattern, first_match, n=3, cutoff=0.3)
    hint = f"similar names are {', '.join(matches)}" if matches else f"there are {', '.join([*first_match][:3])}"
    return f"the pattern {pattern!r} matches no parameter or buffer of the model; {hint}"


def _check(name: str, spec: PartitionSpec, shape: Sequence[int], axes: Mapping[str, int]) -> None:
    """Raise ValueError if a tensor of this name and shape cannot have the sharding over a mesh with these axes."""
    if len(spec) > len(shape):
        raise ValueError(f"{name} is given {spec} of {len(spec)} dimensions, but has shape {tuple(shape)}")
    for dim, entry in enumerate(spec):
        parts = 1
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            if axis not in axes:
                raise ValueError(f"{name} is given {spec}, but the mesh has no axis {axis!r}; it has {', '.join(axes)}")
            parts *= axes[axis]
        if shape[dim] % parts:
            raise ValueError(
                f"{name} is given {spec}, but dimension {dim} of size {shape[dim]} is not divisible by {parts}"
            )
