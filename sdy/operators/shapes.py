"""The sizes of an annotation's identifiers, and from them the shapes of its outputs.

For `(h t) k -> h t k`, an argument of shape (1024, 8) and h=8 they are h=8, t=128 and k=8, which makes (8, 128, 8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from numbers import Integral

from sdy.operators.annotation import EXPANDS, ONE_ELEMENT, Dim, OperatorAnnotation, Tensor
from sdy.rules.annotated_factors import AnnotationError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Fitted:
    """An annotation without `*` and without what is no tensor, and the size of each of its identifiers."""

    annotation: OperatorAnnotation
    sizes: dict[str, int]

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the outputs that are tensors. What is written `1` has the shape (1,) here."""
        return tuple(tuple(map(self._size, tensor)) for tensor in self.annotation.tensor_outputs)

    def _size(self, dim: Dim) -> int:
        return prod(self.sizes[identifier.name] for identifier in dim)


def fit(
    annotation: OperatorAnnotation,
    names: Sequence[str],
    shapes: Sequence[Shape | None],
    values: Mapping[str, object],
) -> Fitted:
    """Find the sizes of all identifiers.

    `names` and `shapes` are those of the inputs, None for the shape of what is no tensor; `values` are the arguments
    by name: an integer among them is the size of the identifier that has its name.

    Raises:
        AnnotationError: the inputs don't fit the annotation, or a size can't be found. It names the argument.
    """
    annotation = annotation.expanded(_rank_of_star(annotation, names, shapes))
    sizes = _Sizes()
    dims: list[_ArgumentDim] = []
    for name, tensor, shape in zip(names, annotation.inputs, shapes, strict=True):
        if tensor is None or shape is None:
            if tensor is not None:
                raise AnnotationError(f"argument '{name}' is no array, but the annotation gives it dimensions")
            continue
        if tensor == ONE_ELEMENT and shape == ():
            continue
        if len(tensor) != len(shape):
            dims_text = "1 dimension" if len(tensor) == 1 else f"{len(tensor)} dimensions"
            raise AnnotationError(f"argument '{name}' has {dims_text} in the annotation, but its shape is {shape}")
        dims += [_ArgumentDim(name, *each) for each in zip(range(len(shape)), tensor, shape, strict=True)]
    _take_values(annotation, values, sizes)
    _take_dims(dims, sizes)
    for name in annotation.unknown_outputs:
        if name not in sizes.known:
            raise AnnotationError(f"'{name}' is in an output, but in no input: give its size as the argument '{name}'")
    return Fitted(OperatorAnnotation(annotation.tensor_inputs, annotation.tensor_outputs), sizes.known)


def size_given(value: object) -> int | None:
    """The size that an argument gives to the identifier of its name, None if it is no integer."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


@dataclass(frozen=True)
class _ArgumentDim:
    """A dimension of an argument, what it is made of, and its size."""

    argument: str
    index: int
    identifiers: Dim
    size: int

    def __str__(self) -> str:
        return f"dimension {self.index} of argument '{self.argument}'"

    @property
    def written(self) -> str:
        text = " ".join(identifier.name for identifier in self.identifiers)
        return f"({text})" if len(self.identifiers) > 1 else text


@dataclass
class _Sizes:
    """The sizes that are known, and where each was found."""

    known: dict[str, int] = field(default_factory=dict[str, int])
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, name: str, size: int, source: str) -> None:
        if name.isdecimal() and int(name) != size:
            raise AnnotationError(f"{source} is {size}, but `{name}` in the annotation")
        if self.known.setdefault(name, size) != size:
            raise AnnotationError(f"`{name}` is {self.known[name]} as {self.sources[name]}, but {size} as {source}")
        self.sources.setdefault(name, source)


def _rank_of_star(annotation: OperatorAnnotation, names: Sequence[str], shapes: Sequence[Shape | None]) -> int:
    """The number of dimensions that `*` stands for; 0 where there is none."""
    found: dict[int, str] = {}
    for name, tensor, shape in zip(names, annotation.inputs, shapes, strict=True):
        if tensor is None or shape is None or not _has_star(tensor):
            continue
        rank = len(shape) - (len(tensor) - 1)
        if rank < 0:
            least = len(tensor) - 1
            raise AnnotationError(
                f"argument '{name}' has at least {least} dimensions in the annotation, but its shape is {shape}"
            )
        found.setdefault(rank, name)
    if len(found) > 1:
        (rank, name), (other, other_name) = list(found.items())[:2]
        raise AnnotationError(f"`*` is {rank} dimensions of argument '{name}', but {other} of argument '{other_name}'")
    if not found and any(map(_has_star, annotation.outputs)):
        raise AnnotationError("`*` is in an output, but in no input")
    return next(iter(found), 0)


def _has_star(tensor: Tensor | None) -> bool:
    return tensor is not None and any(dim[0].name == EXPANDS for dim in tensor)


def _take_values(annotation: OperatorAnnotation, values: Mapping[str, object], sizes: _Sizes) -> None:
    """The sizes that are written, or given as arguments."""
    for identifier in annotation.identifiers:
        name = identifier.name
        if identifier.is_number:
            sizes.known[name] = int(name)
        elif (size := size_given(values.get(name))) is not None:
            if size < 0:
                raise AnnotationError(f"argument '{name}' is the size of a dimension, and can't be {size}")
            sizes.add(name, size, f"argument '{name}'")


def _take_dims(dims: Sequence[_ArgumentDim], sizes: _Sizes) -> None:
    """The sizes that dimensions give: of the identifier it is, or of the only one of several that isn't known yet."""
    for dim in dims:
        if len(dim.identifiers) == 1:
            sizes.add(dim.identifiers[0].name, dim.size, str(dim))
    open_dims = [dim for dim in dims if len(dim.identifiers) > 1]
    while open_dims:
        ready = [dim for dim in open_dims if len(_unknown(dim, sizes)) <= 1]
        if not ready:
            raise _cannot_infer(open_dims[0], sizes)
        for dim in ready:
            _divide(dim, sizes)
        open_dims = [dim for dim in open_dims if dim not in ready]


def _unknown(dim: _ArgumentDim, sizes: _Sizes) -> set[str]:
    return {identifier.name for identifier in dim.identifiers} - sizes.known.keys()


def _divide(dim: _ArgumentDim, sizes: _Sizes) -> None:
    unknown = _unknown(dim, sizes)
    known = [identifier.name for identifier in dim.identifiers if identifier.name not in unknown]
    divisor = prod(sizes.known[name] for name in known)
    listed = ", ".join(f"{name}={sizes.known[name]}" for name in known if not name.isdecimal())
    because = f" with {listed}" if listed else ""
    if not unknown:
        if divisor != dim.size:
            raise AnnotationError(f"{dim} is {dim.size}, but `{dim.written}` makes {divisor}{because}")
        return
    if divisor == 0 or dim.size % divisor:
        raise AnnotationError(f"{dim} is {dim.size}, which `{dim.written}` does not divide{because}")
    sizes.add(unknown.pop(), dim.size // divisor, str(dim))


def _cannot_infer(dim: _ArgumentDim, sizes: _Sizes) -> AnnotationError:
    unknown = [identifier.name for identifier in dim.identifiers if identifier.name in _unknown(dim, sizes)]
    wanted = " or ".join(f"'{name}'" for name in unknown)
    return AnnotationError(
        f"{dim} is {dim.size}, from which `{dim.written}` can't be inferred: "
        f"all but one of {wanted} must be known, so give an argument of that name"
    )
