"""Inference of the sizes of an annotation's identifiers, and of the shapes of its outputs.

For `(h t) k -> h t k`, an argument of shape (1024, 8) and h=8, the sizes are h=8, t=128 and k=8, and the output shape
is (8, 128, 8).
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
    """An annotation without `*` and non-tensors, and the size of each of its identifiers."""

    annotation: OperatorAnnotation
    sizes: dict[str, int]

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the tensor outputs; (1,) for the annotation `1`."""
        return tuple(tuple(map(self._size, tensor)) for tensor in self.annotation.tensor_outputs)

    def _size(self, dim: Dim) -> int:
        return prod(self.sizes[identifier.name] for identifier in dim)


def fit(
    annotation: OperatorAnnotation,
    names: Sequence[str],
    shapes: Sequence[Shape | None],
    values: Mapping[str, object],
) -> Fitted:
    """Infer the sizes of all identifiers.

    Args:
        annotation: The annotation.
        names: The names of the inputs.
        shapes: The shapes of the inputs; None for non-tensors.
        values: The arguments by name; an integer is the size of the identifier with the same name.

    Raises:
        AnnotationError: The inputs do not match the annotation, or a size cannot be inferred; the message names the
            argument.
    """
    annotation = annotation.expanded(_rank_of_star(annotation, names, shapes))
    sizes = _Sizes()
    dims: list[_ArgumentDim] = []
    for name, tensor, shape in zip(names, annotation.inputs, shapes, strict=True):
        if tensor is None or shape is None:
            if tensor is not None:
                raise AnnotationError(f"argument '{name}' is not an array, but has dimensions in the annotation")
            continue
        if tensor == ONE_ELEMENT and shape == ():
            continue
        if len(tensor) != len(shape):
            dims_text = "1 dimension" if len(tensor) == 1 else f"{len(tensor)} dimensions"
            raise AnnotationError(f"argument '{name}' has {dims_text} in the annotation, but its shape is {shape}")
        dims += [_ArgumentDim(name, *each) for each in zip(range(len(shape)), tensor, shape, strict=True)]
    _add_explicit_sizes(annotation, values, sizes)
    _infer_from_dims(dims, sizes)
    for name in annotation.unknown_outputs:
        if name not in sizes.known:
            raise AnnotationError(f"'{name}' is in an output, but in no input: give its size as the argument '{name}'")
    return Fitted(OperatorAnnotation(annotation.tensor_inputs, annotation.tensor_outputs), sizes.known)


def size_argument(value: object) -> int | None:
    """Return the value of an argument as the size of an identifier; None if it is not an integer."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


@dataclass(frozen=True)
class _ArgumentDim:
    """A dimension of an argument, with its identifiers and its size."""

    argument: str
    index: int
    identifiers: Dim
    size: int

    def __str__(self) -> str:
        return f"dimension {self.index} of argument '{self.argument}'"

    @property
    def text(self) -> str:
        text = " ".join(identifier.name for identifier in self.identifiers)
        return f"({text})" if len(self.identifiers) > 1 else text


@dataclass
class _Sizes:
    """The known sizes, and the source of each for messages."""

    known: dict[str, int] = field(default_factory=dict[str, int])
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, name: str, size: int, source: str) -> None:
        if name.isdecimal() and int(name) != size:
            raise AnnotationError(f"{source} is {size}, but `{name}` in the annotation")
        if self.known.setdefault(name, size) != size:
            raise AnnotationError(f"`{name}` is {self.known[name]} as {self.sources[name]}, but {size} as {source}")
        self.sources.setdefault(name, source)


def _rank_of_star(annotation: OperatorAnnotation, names: Sequence[str], shapes: Sequence[Shape | None]) -> int:
    """Return the number of dimensions that `*` stands for; 0 without a `*`."""
    ranks: dict[int, str] = {}
    for name, tensor, shape in zip(names, annotation.inputs, shapes, strict=True):
        if tensor is None or shape is None or not _has_star(tensor):
            continue
        rank = len(shape) - (len(tensor) - 1)
        if rank < 0:
            least = len(tensor) - 1
            raise AnnotationError(
                f"argument '{name}' has at least {least} dimensions in the annotation, but its shape is {shape}"
            )
        ranks.setdefault(rank, name)
    if len(ranks) > 1:
        (rank, name), (other, other_name) = list(ranks.items())[:2]
        raise AnnotationError(f"`*` is {rank} dimensions of argument '{name}', but {other} of argument '{other_name}'")
    if not ranks and any(map(_has_star, annotation.outputs)):
        raise AnnotationError("`*` is in an output, but in no input")
    return next(iter(ranks), 0)


def _has_star(tensor: Tensor | None) -> bool:
    return tensor is not None and any(dim[0].name == EXPANDS for dim in tensor)


def _add_explicit_sizes(annotation: OperatorAnnotation, values: Mapping[str, object], sizes: _Sizes) -> None:
    """Add the sizes that the annotation or the arguments specify."""
    for identifier in annotation.identifiers:
        name = identifier.name
        if identifier.is_number:
            sizes.known[name] = int(name)
        elif (size := size_argument(values.get(name))) is not None:
            if size < 0:
                raise AnnotationError(f"argument '{name}' is the size of a dimension, and can't be {size}")
            sizes.add(name, size, f"argument '{name}'")


def _infer_from_dims(dims: Sequence[_ArgumentDim], sizes: _Sizes) -> None:
    """Infer sizes from dimensions: that of their only identifier, or of the only unknown one of several."""
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
            raise AnnotationError(f"{dim} is {dim.size}, but `{dim.text}` is {divisor}{because}")
        return
    if divisor == 0 or dim.size % divisor:
        raise AnnotationError(f"{dim} is {dim.size}, which is not divisible by `{dim.text}`{because}")
    sizes.add(unknown.pop(), dim.size // divisor, str(dim))


def _cannot_infer(dim: _ArgumentDim, sizes: _Sizes) -> AnnotationError:
    unknown = [identifier.name for identifier in dim.identifiers if identifier.name in _unknown(dim, sizes)]
    names = " or ".join(f"'{name}'" for name in unknown)
    return AnnotationError(
        f"{dim} is {dim.size}, from which `{dim.text}` can't be inferred: "
        f"all but one of {names} must be known, so give an argument of that name"
    )
