"""The parser of sparse constants: `sparse<[[0, 1], [2, 3]], [1.0, 2.0]> : tensor<3x4xf32>`, indices and their values.

All other elements are zero. Both the indices and the values may be splats.
"""

import math
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from sdy.ir.elements import DenseType, SparseElementsAttr
from sdy.text.reading.dense import DenseParser
from sdy.text.reading.numbers import Literal


class SparseElementsParser(DenseParser):
    """Mixin of the parser for sparse constants."""

    def parse_optional_builtin_parametrized_attr(self) -> Attribute | None:
        if self.current_token.text == "distinct":
            self.raise_error("distinct attributes are not supported", self.pos)
        if self.current_token.text != "sparse":
            return super().parse_optional_builtin_parametrized_attr()
        start = self.pos
        self.consume_token()
        return self._parse_sparse(start)

    def _parse_sparse(self, start: int) -> SparseElementsAttr:
        indices: list[Literal] = []
        values: list[Literal] = []
        indices_shape = values_shape = [0]
        self.parse_punctuation("<", " after 'sparse'")
        if self.current_token.kind is not MLIRTokenKind.GREATER:
            indices_shape = self._parse_elements(indices)
            self.parse_punctuation(",")
            values_shape = self._parse_elements(values)
        self.parse_punctuation(">")
        self.parse_punctuation(":")
        type_ = self._dense_type(start)
        shape = type_.get_shape()
        if not indices:
            indices_shape = [0, len(shape)]
        indices_type = TensorType(i64, indices_shape or [1, len(shape)])
        values_type = TensorType(type_.element_type, values_shape or indices_type.get_shape()[:1])
        self._check_shapes(type_, indices_type.get_shape(), values_type.get_shape(), start)
        places = self._elements_builder(indices, indices_shape, start)(indices_type)
        self._check_places(places, type_, start)
        return SparseElementsAttr(places, self._elements_builder(values, values_shape, start)(values_type), type_)

    def _check_shapes(self, type_: DenseType, indices: tuple[int, ...], values: tuple[int, ...], start: int) -> None:
        rank = type_.get_num_dims()
        has_places = indices[1:] == (rank,) or (len(indices) == rank == 1)
        if not has_places or values != indices[:1]:
            self.raise_error(
                f"expected shape ({[*type_.get_shape()]}); inferred shape of indices literal ({[*indices]}); "
                f"inferred shape of values literal ({[*values]})",
                start,
            )

    def _check_places(self, indices: DenseIntOrFPElementsAttr, type_: DenseType, start: int) -> None:
        shape = type_.get_shape()
        count = math.prod(indices.get_shape())
        numbers = cast("tuple[int, ...]", indices.get_values())
        if len(numbers) < count:
            numbers = numbers * count
        for number in range(indices.get_shape()[0]):
            place = numbers[number * len(shape) : (number + 1) * len(shape)]
            if any(not 0 <= index < size for index, size in zip(place, shape, strict=True)):
                self.raise_error(
                    f"sparse index #{number} is not contained within the value shape, with index={[*place]}, "
                    f"and type='{type_}'",
                    start,
                )
