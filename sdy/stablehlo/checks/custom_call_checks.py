"""Verification of a custom call's layouts, its aliases between operands and results, and its buffers (memrefs).

    output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1,
                                                              operand_tuple_indices = []>]

Multiple results are indexed as the elements of a tuple. A layout is a permutation of dimensions, minor to major.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, MemRefType, ShapedType, TensorType, TupleType
from xdsl.ir import Attribute, TypeAttribute
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import OutputOperandAlias
from sdy.stablehlo.attributes.struct_attribute import dims_text
from sdy.stablehlo.checks.shape_checks import compatible_shapes

Types = Sequence[Attribute]


def verify_aliases(aliases: Iterable[OutputOperandAlias], operands: Types, results: Types) -> None:
    """Raise VerifyException if an alias has indices out of bounds or connects different types."""
    where = "in the output_operand_alias attribute"
    for alias in aliases:
        index = alias.operand_index
        if not 0 <= index < len(operands):
            raise VerifyException(f"expects operandIndex {where} to be in range [0, {len(operands)}); got: {index}.")
        operand = _element_at(operands[index], alias.operand_tuple_indices)
        if operand is None:
            raise VerifyException(f"operand_tuple_indices {where} out of bounds")
        output = _element_at(_as_tuple(results), alias.output_tuple_indices)
        if output is None:
            raise VerifyException(f"output_tuple_indices {where} out of bounds")
        if operand != output:
            parts = f"operand part has type '{operand}' and output part has type '{output}'"
            raise VerifyException(f"shapes mismatch {where}: {parts}")


def verify_buffers(target: str, aliases: Iterable[OutputOperandAlias], operands: Types, results: Types) -> None:
    """Verify the targets CreateBuffer, Pin and Unpin, and that other calls alias each result buffer exactly once.

    The aliases must have been verified.

    Raises:
        VerifyException: If a buffer is used incorrectly.
    """
    match target:
        case "CreateBuffer":
            _verify_creation(operands, results)
        case "Pin":
            _verify_conversion(target, operands, results, (TensorType, "tensor"), (MemRefType, "memref"))
        case "Unpin":
            _verify_conversion(target, operands, results, (MemRefType, "memref"), (TensorType, "tensor"))
        case _:
            _verify_aliased_buffers(aliases, operands, results)


def _verify_creation(operands: Types, results: Types) -> None:
    if operands:
        raise VerifyException("CreateBuffer custom_call shouldn't have any inputs")
    if len(results) != 1:
        raise VerifyException("CreateBuffer custom_call should have one result")
    if not isinstance(results[0], MemRefType):
        raise VerifyException("CreateBuffer custom_call should have a memref result")


def _verify_conversion(
    target: str, operands: Types, results: Types, of: tuple[type[Attribute], str], to: tuple[type[Attribute], str]
) -> None:
    for place, types, (type_class, name) in (("input", operands, of), ("output", results, to)):
        if len(types) != 1:
            raise VerifyException(f"{target} custom_call should have one {place}")
        if not isinstance(types[0], type_class):
            raise VerifyException(f"{target} custom_call should have a {name} {place}")
    (before, elements), (after, other_elements) = map(_shape_and_elements, (operands[0], results[0]))
    if elements != other_elements or not compatible_shapes(before, after):
        raise VerifyException(f"{target} custom_call should have compatible input and output types")


def _verify_aliased_buffers(aliases: Iterable[OutputOperandAlias], operands: Types, results: Types) -> None:
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, ...]] = set()
    for alias in aliases:
        if not isinstance(_element_at(operands[alias.operand_index], alias.operand_tuple_indices), MemRefType):
            continue
        output, operand = alias.output_tuple_indices, (alias.operand_index, *alias.operand_tuple_indices)
        if output in outputs:
            raise VerifyException(f"buffer output {dims_text(output)} is used in output_operand_alias more than once")
        if operand in inputs:
            part = f"{alias.operand_index}{dims_text(alias.operand_tuple_indices)}"
            raise VerifyException(f"buffer operand {part} is used in output_operand_alias more than once")
        outputs.add(output)
        inputs.add(operand)
    for indices in _buffers(_as_tuple(results)):
        if indices not in outputs:
            raise VerifyException(f"buffer output {dims_text(indices)} is not used in output_operand_alias")


def _as_tuple(results: Types) -> Attribute:
    return results[0] if len(results) == 1 else TupleType(ArrayAttr(cast(Sequence[TypeAttribute], results)))


def _element_at(type_: Attribute, indices: Sequence[int]) -> Attribute | None:
    """Return the type at these indices of nested tuples, None if they are out of bounds."""
    for index in indices:
        if not isinstance(type_, TupleType) or not 0 <= index < len(type_.types):
            return None
        type_ = type_.types.data[index]
    return type_


def _buffers(type_: Attribute, indices: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the memrefs in nested tuples."""
    if isinstance(type_, MemRefType):
        yield indices
    elif isinstance(type_, TupleType):
        for index, element in enumerate(type_.types):
            yield from _buffers(element, (*indices, index))


def _shape_and_elements(type_: Attribute) -> tuple[Sequence[int], Attribute]:
    assert isinstance(type_, ShapedType)
    return type_.get_shape(), cast(TensorType[Attribute] | MemRefType[Attribute], type_).element_type


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
