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
from sdy.passes.jax.api.auto_jit import Auto
from sdy.passes.jax.device_mesh import AnyMesh

ShardingSpec: TypeAlias = PartitionSpec | Auto
"""The sharding of a tensor, or `sdy.AUTO` to let the compiler choose."""

Patterns: TypeAlias = Mapping[str, ShardingSpec] | Auto | None

_REPLICATED = PartitionSpec()


def axes_of(mesh: AnyMesh | Mesh) -> dict[str, int]:
    """Return the axes of a mesh with their sizes."""
    return dict(mesh.axes if isinstance(mesh, Mesh) else mesh.shape)


def shardings_of(
    patterns: Patterns, names: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[int]], axes: Mapping[str, int]
) -> dict[str, ShardingSpec]:
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
    by_pattern = {"*": patterns} if isinstance(patterns, Auto) else dict(patterns or {})
    first_match = {
        name: next((pattern for pattern in by_pattern if fnmatchcase(name, pattern)), None)
        for all_names in names.values()
        for name in all_names
    }
    for pattern in by_pattern:
        if pattern not in first_match.values():
            raise ValueError(_unused(pattern, by_pattern, first_match))
    by_first_name = {first: _spec_of(all_names, first_match, by_pattern) for first, all_names in names.items()}
    for name, spec in by_first_name.items():
        if isinstance(spec, PartitionSpec):
            _check(name, spec, shapes[name], axes)
    return by_first_name


def split_alike(spec: ShardingSpec, shape: Sequence[int], other: Sequence[int]) -> ShardingSpec:
    """Return the sharding of an optimizer's tensor of shape `other` for a parameter of `shape` with sharding `spec`.

    It is sharded along the dimensions whose sizes are equal, and replicated if the ranks differ.
    """
    if isinstance(spec, Auto):
        return spec
    if len(shape) != len(other):
        return _REPLICATED
    return PartitionSpec(*(axes if shape[dim] == other[dim] else None for dim, axes in enumerate(spec)))


def _spec_of(
    names: Iterable[str], first_match: Mapping[str, str | None], by_pattern: Mapping[str, ShardingSpec]
) -> ShardingSpec:
    matches = {name: pattern for name in names if (pattern := first_match[name]) is not None}
    choices = {name: by_pattern[pattern] for name, pattern in matches.items()}
    if len(set(choices.values())) > 1:
        listed = ", ".join(f"{name} is given {spec} by {matches[name]!r}" for name, spec in choices.items())
        raise ValueError(f"one tensor has several names with different shardings: {listed}")
    return next(iter(choices.values()), _REPLICATED)


def _unused(pattern: str, by_pattern: Mapping[str, ShardingSpec], first_match: Mapping[str, str | None]) -> str:
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
