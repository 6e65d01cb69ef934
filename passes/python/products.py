"""Sums of products: `@`, `jnp.einsum` and convolutions."""

from collections.abc import Sequence
from string import ascii_letters
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation, SSAValue

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, Precedence, attribute, binary, call, sizes, tuple_of
from sdy.passes.python.literals import dtype_of, dtype_text
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.dot_algorithm import DotAlgorithm, DotAlgorithmAttr, is_f8
from sdy.stablehlo.attributes.enums import Precision, PrecisionAttr
from sdy.stablehlo.checks.windows import padding_pairs
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp

_Dims = tuple[tuple[int, ...], tuple[int, ...]]
"""Dimensions of the operands of a product."""


def _dot_general(op: stablehlo.DotGeneralOp, scope: Scope) -> Expression | None:
    order = order_of_product(op.result, scope)
    if _is_product_of_matrices(op):
        product = _product_of_matrices(op, scope, is_transposed=order == (1, 0))
    elif _is_matmul(op):
        product = binary(scope.of(op.lhs), "@", scope.of(op.rhs), Precedence.PRODUCT)
    else:
        product = _einsum(op, scope, order)
    if order is None:
        return product
    scope.bind(op.result, product)  # for the transpose
    return None


def _product_of_matrices(op: stablehlo.DotGeneralOp, scope: Scope, *, is_transposed: bool) -> Expression:
    (contracted,) = zip(*_contracted(op), strict=True)
    pairs = [(scope.of(op.lhs), contracted[0] == 0), (scope.of(op.rhs), contracted[1] == 1)]
    if is_transposed:
        pairs = [(operand, not transposes) for operand, transposes in reversed(pairs)]
    lhs, rhs = (attribute(operand, "T") if transposes else operand for operand, transposes in pairs)
    return binary(lhs, "@", rhs, Precedence.PRODUCT)


def _einsum(op: stablehlo.DotGeneralOp, scope: Scope, order: Sequence[int] | None) -> Expression:
    """Return the product as `jnp.einsum`, with the dimensions of the result in another order if given."""
    lhs_rank, rhs_rank = len(shape(op.lhs.type)), len(shape(op.rhs.type))
    batch, contracted = _batch(op), _contracted(op)
    letters = iter(ascii_letters)
    left = [next(letters) for _ in range(lhs_rank)]
    pairs = [*zip(*batch, strict=True), *zip(*contracted, strict=True)]
    paired = {dim: left[other] for other, dim in pairs}
    right = [paired.get(dim) or next(letters) for dim in range(rhs_rank)]
    result = [
        *(left[dim] for dim in batch[0]),
        *(letter for dim, letter in enumerate(left) if dim not in batch[0] and dim not in contracted[0]),
        *(letter for dim, letter in enumerate(right) if dim not in paired),
    ]
    result = result if order is None else [result[dim] for dim in order]
    subscripts = f'"{"".join(left)},{"".join(right)}->{"".join(result)}"'
    return call("jnp.einsum", subscripts, scope.of(op.lhs), scope.of(op.rhs), **_options(op))


def order_of_product(value: SSAValue, scope: Scope) -> Sequence[int] | None:
    """Return the order of dimensions in which a product that is only transposed is printed; else None.

    A product of matrices, `(x.T @ y).T`, is printed as `y.T @ x` if that has fewer transposes.
    """
    op = scope.definition(value)
    uses = [use.operation for use in value.uses]
    if (
        value in scope.passed
        or len(uses) != 1
        or not isinstance(uses[0], stablehlo.TransposeOp)
        or not isinstance(op, stablehlo.DotGeneralOp)
    ):
        return None
    is_shorter = _contracted(op) != ((1,), (0,)) if _is_product_of_matrices(op) else not _is_matmul(op)
    return tuple(uses[0].permutation.get_values()) if is_shorter and uses[0].parent is op.parent else None


def _batch(op: stablehlo.DotGeneralOp) -> _Dims:
    dims = op.dot_dimension_numbers.data
    return dims.lhs_batching_dimensions, dims.rhs_batching_dimensions


def _contracted(op: stablehlo.DotGeneralOp) -> _Dims:
    dims = op.dot_dimension_numbers.data
    return dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions


def _is_product_of_matrices(op: stablehlo.DotGeneralOp) -> bool:
    """Return whether `lhs @ rhs` is the product after transposes of the operands."""
    ranks = {len(shape(operand.type)) for operand in (op.lhs, op.rhs)}
    return not _options(op) and _batch(op) == ((), ()) and ranks == {2} and len(_contracted(op)[0]) == 1


def _is_matmul(op: stablehlo.DotGeneralOp) -> bool:
    """Return whether `lhs @ rhs` is the product."""
    if _options(op):
        return False
    lhs_rank, rhs_rank = len(shape(op.lhs.type)), len(shape(op.rhs.type))
    batch, contracted = _batch(op), _contracted(op)
    if batch == ((), ()):
        return rhs_rank <= 2 and lhs_rank >= 1 <= rhs_rank and contracted == ((lhs_rank - 1,), (0,))
    leading = tuple(range(len(batch[0])))
    return (
        batch == (leading, leading)
        and lhs_rank == rhs_rank == len(leading) + 2
        and contracted == ((lhs_rank - 1,), (rhs_rank - 2,))
    )


def _options(op: Operation) -> dict[str, Item]:
    """Return the precision and the element type of a product, unless they are the usual ones."""
    options: dict[str, Item] = {}
    precisions = _precisions(op.properties.get("precision_config"))
    if any(precision is not Precision.DEFAULT for precision in precisions):
        names = [f"lax.Precision.{precision.value}" for precision in precisions]
        options["precision"] = names[0] if len({*names}) == 1 else tuple_of(names)
    if isinstance(algorithm := op.properties.get("algorithm"), DotAlgorithmAttr):
        options["precision"] = f"lax.DotAlgorithmPreset.{_preset(algorithm.data)}"
    result = dtype_of(op.results[0])
    if any(dtype_of(operand) != result for operand in op.operands[:2]):
        options["preferred_element_type"] = dtype_text(result)
    return options


def _preset(algorithm: DotAlgorithm) -> str:
    """Return the name of an algorithm in JAX: `BF16_BF16_F32_X3` has three products."""
    types = [algorithm.lhs_precision_type, algorithm.rhs_precision_type, algorithm.accumulation_type]
    if is_f8(types[0]):
        return "ANY_F8_ANY_F8_F32_FAST_ACCUM" if algorithm.allow_imprecise_accumulation else "ANY_F8_ANY_F8_F32"
    count = algorithm.num_primitive_operations
    return "_".join([*(str(each).upper() for each in types), *([f"X{count}"] if count > 1 else [])])


def _precisions(config: Attribute | None) -> list[Precision]:
    if not isinstance(config, ArrayAttr):
        return []
    return [each.data for each in cast(ArrayAttr[Attribute], config) if isinstance(each, PrecisionAttr)]


def _convolution(op: stablehlo.ConvolutionOp, scope: Scope) -> Expression:
    dims = op.dimension_numbers.data
    kernel = scope.of(op.rhs)
    rank = len(dims.input) - 2
    if op.window_reversal is not None:
        flags = op.window_reversal.get_values()
        if reversed_dims := [dim for dim, flag in zip(dims.kernel[2:], flags, strict=True) if flag]:
            kernel = call("lax.rev", kernel, sizes(reversed_dims))
    options: dict[str, Item] = {}
    for name in ("lhs_dilation", "rhs_dilation"):
        values = op.properties.get(name)
        if values is not None and {*(found := getattr(op, name).get_values())} != {1}:
            options[name] = sizes(found)
    kernel_dims = (dims.kernel[1], dims.kernel[0], *dims.kernel[2:])
    if {dims.input, kernel_dims, dims.output} != {tuple(range(rank + 2))}:
        numbers: list[Item] = [sizes(dims.input), sizes(kernel_dims), sizes(dims.output)]
        options["dimension_numbers"] = call("lax.ConvDimensionNumbers", *numbers)
    for name in ("feature_group_count", "batch_group_count"):
        if (groups := getattr(op, name).value.data) != 1:
            options[name] = str(groups)
    strides = [1] * rank if op.window_strides is None else op.window_strides.get_values()
    padding = padding_pairs(op.padding) or [(0, 0)] * rank
    pairs = tuple_of(map(sizes, padding))
    options |= _options(op)
    return call("lax.conv_general_dilated", scope.of(op.lhs), kernel, sizes(strides), pairs, **options)


def _ragged_dot(op: RaggedDotOp, scope: Scope) -> Expression:
    dims = op.ragged_dot_dimension_numbers.data
    numbers = tuple_of(
        [
            tuple_of([sizes(dims.lhs_contracting_dimensions), sizes(dims.rhs_contracting_dimensions)]),
            tuple_of([sizes(dims.lhs_batching_dimensions), sizes(dims.rhs_batching_dimensions)]),
        ]
    )
    ragged = call(
        "lax.RaggedDotDimensionNumbers",
        dot_dimension_numbers=numbers,
        lhs_ragged_dimensions=sizes(dims.lhs_ragged_dimensions),
        rhs_group_dimensions=sizes(dims.rhs_group_dimensions),
    )
    return call("lax.ragged_dot_general", *map(scope.of, op.operands), ragged, **_options(op))


PRODUCTS: dict[type[Operation], Printer] = {
    RaggedDotOp: _ragged_dot,
    stablehlo.ConvolutionOp: _convolution,
    stablehlo.DotGeneralOp: _dot_general,
}
