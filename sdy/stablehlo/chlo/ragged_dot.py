"""CHLO's `chlo.ragged_dot`: a dot product with groups of different sizes along one dimension.

ragged dimension          lhs          rhs             groups     result
free dimension of lhs     [b, m, k]    [g, b, k, n]    [b, g]     [b, m, n]
contracted                [b, m, k]    [b, k, n]       [b, g]     [g, b, m, n]
batching                  [b, m, k]    [b, k, n]       [g]        [b, m, n]
"""

from collections.abc import Sequence
from enum import Enum, auto

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sdy.stablehlo.attributes.operation_attributes import DotDimensionNumbers
from sdy.stablehlo.attributes.precision import verify_precision
from sdy.stablehlo.checks.inference import check_inferred_shape, message_only
from sdy.stablehlo.checks.shape_checks import as_ranked, tensor_type
from sdy.stablehlo.chlo.attributes import (
    PrecisionAttr,
    RaggedDotDimensionNumbers,
    RaggedDotDimensionNumbersAttr,
    outer_dims,
)
from sdy.stablehlo.dot import verify_dot_dimensions
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.element_types import INTEGERS
from sdy.stablehlo.types.sizes import sizes_text
from sdy.stablehlo.types.tensor_types import ANY_TENSOR, ranked


@define
class RaggedDotOp(IRDLOperation):
    """Dot product with one ragged dimension, whose group sizes are an operand."""

    name = "chlo.ragged_dot"
    lhs = operand_def(ANY_TENSOR)
    rhs = operand_def(ANY_TENSOR)
    group_sizes = operand_def(ranked(INTEGERS))
    ragged_dot_dimension_numbers = prop_def(RaggedDotDimensionNumbersAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    result = result_def(ANY_TENSOR)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Verify the dimension numbers, the group sizes and the result's shape."""
        for name in ("lhs", "rhs"):
            if as_ranked(getattr(self, name).type) is None:
                raise VerifyException(f"{name} must have a rank")
        with message_only(self):
            shape = self._infer_shape()
        check_inferred_shape(self.result, shape)

    def _infer_shape(self) -> list[int]:
        numbers = self.ragged_dot_dimension_numbers.data
        lhs, rhs, groups = (tensor_type(value).get_shape() for value in (self.lhs, self.rhs, self.group_sizes))
        verify_precision(self.precision_config)
        verify_dot_dimensions(_dot_numbers(numbers), lhs, rhs)
        kind = _ragged_kind(numbers, len(lhs))
        _verify_group_sizes(numbers, lhs, groups)
        _verify_group_dimensions(numbers, kind, rhs, groups[-1])
        lhs_used = {*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions}
        rhs_used = {
            *numbers.rhs_batching_dimensions,
            *numbers.rhs_contracting_dimensions,
            *numbers.rhs_group_dimensions,
        }
        return [
            *([groups[-1]] if kind is Ragged.CONTRACTING else []),
            *(lhs[dim] for dim in numbers.lhs_batching_dimensions),
            *(size for dim, size in enumerate(lhs) if dim not in lhs_used),
            *(size for dim, size in enumerate(rhs) if dim not in rhs_used),
        ]


class Ragged(Enum):
    """The kind of the ragged dimension."""

    FREE = auto()
    CONTRACTING = auto()
    BATCHING = auto()


def _dot_numbers(numbers: RaggedDotDimensionNumbers) -> DotDimensionNumbers:
    return DotDimensionNumbers(
        numbers.lhs_batching_dimensions,
        numbers.rhs_batching_dimensions,
        numbers.lhs_contracting_dimensions,
        numbers.rhs_contracting_dimensions,
    )


def _ragged_kind(numbers: RaggedDotDimensionNumbers, rank: int) -> Ragged:
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise VerifyException("There must be exactly one ragged dimension in the lhs.")
    (dim,) = numbers.lhs_ragged_dimensions
    _verify_in_range(dim, rank, "lhs_ragged_dim", "lhs_rank")
    if dim in numbers.lhs_batching_dimensions:
        return Ragged.BATCHING
    return Ragged.CONTRACTING if dim in numbers.lhs_contracting_dimensions else Ragged.FREE


def _verify_group_sizes(numbers: RaggedDotDimensionNumbers, lhs: Sequence[int], groups: Sequence[int]) -> None:
    """Raise VerifyException unless there is one list of group sizes, or one per index outside the ragged dimension."""
    if len(groups) == 1:
        return
    expected = [lhs[dim] for dim in outer_dims(numbers)]
    if len(groups) != len(expected) + 1:
        raise VerifyException(f"expected group_sizes to have rank {len(expected) + 1}, got {len(groups)}")
    if expected != list(groups[:-1]):
        expected_text = sizes_text([*expected, groups[-1]])
        raise VerifyException(f"group_sizes is expected to have shape [{expected_text}], got [{sizes_text(groups)}]")


def _verify_group_dimensions(numbers: RaggedDotDimensionNumbers, kind: Ragged, rhs: Sequence[int], count: int) -> None:
    """Raise VerifyException unless rhs has the required group dimensions, of size `count`."""
    dims = numbers.rhs_group_dimensions
    for dim in dims:
        _verify_in_range(dim, len(rhs), "rhs_group_dim", "rhs_rank")
    for name in ("rhs_batching_dimensions", "rhs_contracting_dimensions"):
        _verify_distinct(dims, getattr(numbers, name), f"rhs_group_dimensions and {name}")
    if kind is not Ragged.FREE:
        if dims:
            raise VerifyException(
                "There must be zero group dimensions in the rhs when the ragged dimension is batch or contracting."
            )
        return
    if len(dims) != 1:
        raise VerifyException(
            "There must be exactly one group dimension in the rhs when the lhs ragged dimension is non-contracting."
        )
    sizes = (count, rhs[dims[0]])
    if DYNAMIC_INDEX not in sizes and sizes[0] != sizes[1]:
        raise VerifyException(f"rhs group dimension is expected to have size={sizes[0]}, got {sizes[1]}")


def _verify_in_range(dim: int, rank: int, name: str, rank_name: str) -> None:
    if not 0 <= dim < rank:
        raise VerifyException(f"Expects {name} to be in range [0, {rank_name}) i.e. [0, {rank}). got: {dim}.")


def _verify_distinct(dims: Sequence[int], others: Sequence[int], names: str) -> None:
    seen: set[int] = set()
    for dim in (*dims, *others):
        if dim in seen:
            raise VerifyException(f"has duplicated dimension from {names}: {dim}")
        seen.add(dim)
