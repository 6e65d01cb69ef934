"""Sums of products: `@`, `jnp.einsum` and convolutions."""

from string import ascii_letters
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Operation

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.passes.python.expressions import Expression, Item, Precedence, attribute, binary, call, sizes, tuple_of
from sdy.passes.python.literals import dtype_of, dtype_text
from sdy.passes.python.scope import Printer, Scope
from sdy.stablehlo.attributes.enums import Precision, PrecisionAttr
from sdy.stablehlo.checks.windows import padding_pairs
from sdy.stablehlo.chlo.ragged_dot import RaggedDotOp


def _dot_general(op: stablehlo.DotGeneralOp, scope: Scope) -> Expression:
    if op.algorithm is not None:
        raise NotImplementedError("products with an algorithm are not printed")
    dims = op.dot_dimension_numbers.data
    lhs_rank, rhs_rank = len(shape(op.lhs.type)), len(shape(op.rhs.type))
    options = _options(op)
    batch = (dims.lhs_batching_dimensions, dims.rhs_batching_dimensions)
    contracted = (dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions)
    if not options and _is_matmul(lhs_rank, rhs_rank, batch, contracted):
        return binary(scope.of(op.lhs), "@", scope.of(op.rhs), Precedence.PRODUCT)
    if not options and batch == ((), ()) and lhs_rank == rhs_rank == 2 and len(contracted[0]) == 1:
        lhs, rhs = scope.of(op.lhs), scope.of(op.rhs)
        lhs = attribute(lhs, "T") if contracted[0] == (0,) else lhs
        rhs = attribute(rhs, "T") if contracted[1] == (1,) else rhs
        return binary(lhs, "@", rhs, Precedence.PRODUCT)
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
    subscripts = f'"{"".join(left)},{"".join(right)}->{"".join(result)}"'
    return call("jnp.einsum", subscripts, scope.of(op.lhs), scope.of(op.rhs), **options)


def _is_matmul(
    lhs_rank: int, rhs_rank: int, batch: tuple[tuple[int, ...], ...], contracted: tuple[tuple[int, ...], ...]
) -> bool:
    """Return whether `lhs @ rhs` is the product."""
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
    result = dtype_of(op.results[0])
    if any(dtype_of(operand) != result for operand in op.operands[:2]):
        options["preferred_element_type"] = dtype_text(result)
    return options


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
