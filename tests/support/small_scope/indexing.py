"""Slices, gathers and scatters at dynamic indices, in bounds and out of bounds."""

import numpy as np

from small_scope.program import Program, Value


def dynamic_slice(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    sizes = tuple(program.size(0, size) for size in shape)
    value = program.argument(shape)
    starts = _starts(program, shape, sizes)
    names = ", ".join(each.name for each in (value, *starts))
    return program.result(
        program.op(f"stablehlo.dynamic_slice {names}, sizes = {list(sizes)}", sizes, operands=(value, *starts))
    )


def dynamic_update_slice(program: Program) -> Program:
    shape = tuple(program.size() for _ in range(program.choices.of((1, 2))))
    sizes = tuple(program.size(0, size) for size in shape)
    value, update = program.argument(shape), program.argument(sizes)
    starts = _starts(program, shape, sizes)
    names = ", ".join(each.name for each in (value, update, *starts))
    return program.result(
        program.op(f"stablehlo.dynamic_update_slice {names}", shape, operands=(value, update, *starts))
    )


def _starts(program: Program, shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[Value]:
    return [program.index(0, size - taken, 1, -2, size + 1, 3) for size, taken in zip(shape, sizes, strict=True)]


def gather(program: Program) -> Program:
    """Gather rows of a matrix, or partial rows, by indices along either dimension."""
    rows, columns, count = program.size(1), program.size(1, 4), program.size()
    dim = program.choices.of((0, 1))
    collapsed = program.choices.of((True, False))
    shape = (rows, columns) if dim == 0 else (columns, rows)
    sizes = [1 if collapsed else program.size(1, rows), program.size(1, columns)]
    operand = program.argument(shape)
    indices = _indices(program, (count,), rows)
    offsets = [1] if collapsed else [1, 2]
    attributes = f"offset_dims = {offsets}, " + (f"collapsed_slice_dims = [{dim}], " if collapsed else "")
    ordered = sizes if dim == 0 else sizes[::-1]
    result = (count, sizes[1]) if collapsed else (count, *ordered)
    return program.result(
        program.op(
            f'"stablehlo.gather"({operand.name}, {indices.name}) <{{dimension_numbers = #stablehlo.gather<{attributes}'
            f"start_index_map = [{dim}], index_vector_dim = 1>, slice_sizes = array<i64: {ordered[0]}, "
            f"{ordered[1]}>}}>",
            result,
            operands=(operand, indices),
        )
    )


def gather_in_batches(program: Program) -> Program:
    batch, columns, count = program.size(1), program.size(1, 4), program.size(1, 4)
    operand = program.argument((batch, columns))
    indices = _indices(program, (batch, count), columns)
    return program.result(
        program.op(
            f'"stablehlo.gather"({operand.name}, {indices.name}) <{{dimension_numbers = #stablehlo.gather<'
            "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], "
            "start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}>",
            (batch, count),
            operands=(operand, indices),
        )
    )


def scatter(program: Program) -> Program:
    """Scatter into rows of a matrix, or into partial columns."""
    rows, columns, count = program.size(1), program.size(1, 4), program.size()
    dim = program.choices.of((0, 1))
    inserted = program.choices.of((True, False))
    shape = (rows, columns) if dim == 0 else (columns, rows)
    sizes = [1 if inserted else program.size(1, rows), program.size(1, columns)]
    ordered = sizes if dim == 0 else sizes[::-1]
    reducer = program.choices.of(("add", "maximum", "multiply", "xor"))
    operand = program.argument(shape)
    indices = _indices(program, (count,), rows)
    updates = program.argument((count, sizes[1]) if inserted else (count, *ordered))
    windows = "update_window_dims = " + ("[1], " if inserted else "[1, 2], ")
    windows += f"inserted_window_dims = [{dim}], " if inserted else ""
    return program.result(
        program.op(
            f'"stablehlo.scatter"({operand.name}, {indices.name}, {updates.name}) <{{scatter_dimension_numbers = '
            f"#stablehlo.scatter<{windows}scatter_dims_to_operand_dims = [{dim}], index_vector_dim = 1>}}> "
            + region(reducer),
            shape,
            operands=(operand, indices, updates),
        )
    )


def region(reducer: str, element: str = "i32") -> str:
    """Return a region that combines two elements."""
    type_ = f"tensor<{element}>"
    return (
        f"({{ ^bb0(%a: {type_}, %b: {type_}): %c = stablehlo.{reducer} %a, %b : {type_} "
        f"stablehlo.return %c : {type_} }})"
    )


def _indices(program: Program, shape: tuple[int, ...], rows: int) -> Value:
    """Return indices in bounds and out of bounds, unique if possible."""
    count = int(np.prod(shape))
    numbers = np.asarray([(5 * place + 1) % (rows + 2) - 1 for place in range(count)]).reshape(shape)
    return program.constrained(program.whole(shape, numbers=numbers))


INDEXING = [dynamic_slice, dynamic_update_slice, gather, gather_in_batches, scatter]
