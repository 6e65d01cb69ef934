"""Verification of a custom call's operand and result layouts: permutations of dimensions, minor to major."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, ShapedType, TensorType, TupleType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

Layouts = ArrayAttr[DenseIntOrFPElementsAttr]


def verify_layouts(kind: str, types: Sequence[Attribute], layouts: Layouts) -> None:
    """Raise VerifyException unless there is one layout per type, a permutation of its dimensions.

    `kind`, "operand" or "result", appears in the messages.
    """
    if len(types) != len(layouts):
        raise VerifyException(
            f"Number of {kind}s must match the number of {kind} layouts, {len(types)} != {len(layouts)}"
        )
    for index, (type_, layout) in enumerate(zip(types, layouts, strict=True)):
        if isinstance(type_, TupleType):
            raise VerifyException("Tuple types are not fully supported with layout constraints yet")
        dims = cast(Sequence[int], layout.get_values())
        if isinstance(type_, TensorType):
            _verify_permutation(cast(TensorType[Attribute], type_), layout, dims)
        elif not isinstance(type_, ShapedType) and dims:
            raise VerifyException(
                f"Only tensor types can have non-empty layout: {kind} #{index} of type '{type_}' has layout {layout}"
            )


def _verify_permutation(type_: TensorType[Attribute], layout: DenseIntOrFPElementsAttr, dims: Sequence[int]) -> None:
    rank = type_.get_num_dims()
    if sorted(dims) != list(range(rank)):
        raise VerifyException(
            f"incorrect layout {layout} for type '{type_}', layout must be a permutation of [0, {rank})"
        )
