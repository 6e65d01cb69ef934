"""Manual computations over some axes, with other axes still to partition.

Each family of operations can be the body of a manual computation, or take operands from manual computations. Results
of bodies go through collectives along the manual axes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import prod

import numpy as np

from sdy.axes import AxisRef
from small_scope.annotated import ANNOTATED
from small_scope.choices import NoCaseError
from small_scope.collectives import KEEP_SHAPE, MOVES, all_reduce
from small_scope.contractions import CONTRACTIONS
from small_scope.control_flow import CONTROL_FLOW
from small_scope.elementwise import ELEMENTWISE
from small_scope.indexing import INDEXING
from small_scope.linear_algebra import LINEAR_ALGEBRA
from small_scope.program import Array, Program, Shape, Value
from small_scope.reductions import REDUCTIONS
from small_scope.reshards import RESHARDS
from small_scope.shaping import SHAPING
from small_scope.windows import WINDOWS

Family = Callable[[Program], Program]
ManualDims = Mapping[str, int]
"""The dimension of a value that each manual axis shards, if it shards one."""

_MOST_ELEMENTS = 256


def _with_body(program: Program, families: Sequence[Family]) -> Program:
    """Append a manual computation with a body of one of `families` and collectives on its results."""
    if not program.free.axes:  # nested in a computation that is manual over all axes
        return program.choices.of(families)(program)
    axes = _some_axes(program)
    body = program.inside(axes)
    program.choices.of(families)(body)
    dims: list[ManualDims] = []
    results: list[Value] = []
    for value in body.take_results():
        for moved in _moved(body, value, axes):
            result, manual_dims = _split_or_combined(body, moved, axes)
            results.append(result)
            dims.append(manual_dims)
    operands, operand_dims = _operands(program, body, axes)
    outside = _computation(program, body, axes, operands, operand_dims, results, dims)
    return program.result(*(_used(program, value) for value in outside))


def _computation(
    program: Program,
    body: Program,
    axes: Sequence[str],
    operands: Sequence[Value],
    operand_dims: Sequence[ManualDims],
    results: Sequence[Value],
    result_dims: Sequence[ManualDims],
) -> list[Value]:
    """Append a manual computation over `axes` and return its results; `dims` are the dimensions that the axes shard."""
    in_shardings = ", ".join(map(partial(_sharding, body), operands, operand_dims))
    out_shardings = ", ".join(map(partial(_sharding, body), results, result_dims))
    arguments = ", ".join(f"{value.name}: {value.type}" for value, _ in body.arguments)
    names, types = ", ".join(value.name for value in results), ", ".join(value.type for value in results)
    manual = ", ".join(f'"{axis}"' for axis in axes)
    return program.ops(
        f"sdy.manual_computation({', '.join(value.name for value in operands)}) in_shardings=[{in_shardings}] "
        f"out_shardings=[{out_shardings}] manual_axes={{{manual}}} ({arguments}) {{\n  {body.body}\n  "
        f"sdy.return {names} : {types} }}",
        [_outside(value.shape, dims, program) for value, dims in zip(results, result_dims, strict=True)],
        operands,
        [value.element for value in results],
    )


def _sharding(body: Program, value: Value, dims: ManualDims) -> str:
    """Return the sharding of a value outside the computation: manual axes, then free ones."""
    rank = len(value.shape)
    split = body.split(rank) or ((),) * rank
    end = body.choices.of(([], ["?"]))
    order = body.choices.of((1, -1))
    by_dim = [[f'"{axis}"' for axis in [*dims][::order] if dims[axis] == dim] for dim in range(rank)]
    texts = (
        "{" + ", ".join([*first, *map(str, others), *end]) + "}" for first, others in zip(by_dim, split, strict=True)
    )
    return f"<@mesh, [{', '.join(texts)}]>"


def _some_axes(program: Program) -> tuple[str, ...]:
    """Choose some of the free axes."""
    names = program.free.axis_names
    subsets = [subset for count in range(1, len(names) + 1) for subset in combinations(names, count)]
    return program.choices.of(subsets)


def _moved(body: Program, value: Value, axes: tuple[str, ...]) -> list[Value]:
    """Return a collective of `value`, or of its product with itself, and perhaps `value` too."""
    start = value
    if len(value.shape) == 2 and 0 not in value.shape and value.element == "i32" and body.choices.of((False, True)):
        start = _gram(body, value)
    moves = body.choices.of(((), *((move,) for move in MOVES)))
    moved = start
    for move in moves:
        moved = move(body, moved, _axis_or_part(body, body.choices.of(axes)))
    if prod(moved.shape) > _MOST_ELEMENTS:
        raise NoCaseError
    moved = body.constrained(moved)
    return [value] if moved is value else [moved, value] if body.choices.of((False, True)) else [moved]


def _gram(program: Program, value: Value) -> Value:
    rows, columns = value.shape
    dims, size = program.choices.of((("[0] x [0]", columns), ("[1] x [1]", rows)))
    text = f"stablehlo.dot_general {value.name}, {value.name}, contracting_dims = {dims}"
    return program.op(text, (size, size), operands=(value, value))


def _axis_or_part(body: Program, name: str) -> AxisRef:
    size = body.mesh.axis_size(name)
    parts = [AxisRef(name, 1, 2), AxisRef(name, 2, 2)] if size == 4 else []
    return body.choices.of((AxisRef(name), *parts))


def _split_or_combined(body: Program, value: Value, axes: tuple[str, ...]) -> tuple[Value, ManualDims]:
    """Choose the dimensions that manual axes shard; all-reduce `value` over the other axes, so that devices agree."""
    dims: dict[str, int] = {}
    for axis in axes:
        dim = body.choices.of((None, *range(len(value.shape))))
        if dim is None:
            value = all_reduce(body, value, AxisRef(axis))
        else:
            dims[axis] = dim
    return value, dims


def _operands(program: Program, body: Program, axes: tuple[str, ...]) -> tuple[list[Value], list[ManualDims]]:
    """Return an operand for each argument of `body`, with unequal shards, and the dimensions that axes shard."""
    operands: list[Value] = []
    dims: list[ManualDims] = []
    for value, arrays in body.arguments:
        choices = ((axis, program.choices.of((None, *range(len(value.shape))))) for axis in axes)
        split = {axis: dim for axis, dim in choices if dim is not None}
        whole = _outside(value.shape, split, program)
        operand = program.given([_with_more_parts(array, whole) for array in arrays], whole, value.element)
        operands.append(program.constrained(operand) if value.shape else operand)
        dims.append(split)
    return operands, dims


def _outside(shape: Shape, dims: ManualDims, program: Program) -> Shape:
    sizes = [*shape]
    for axis, dim in dims.items():
        sizes[dim] *= program.mesh.axis_size(axis)
    return tuple(sizes)


def _with_more_parts(array: Array, shape: Shape) -> Array:
    """Return an array of this shape whose first shard is `array`, with greater numbers in the other shards."""
    times = [after // before if before else 1 for before, after in zip(array.shape, shape, strict=True)]
    parts = np.arange(prod(times)).reshape(times)
    number_of_part = np.kron(parts, np.ones_like(array, int)) if shape else parts
    whole = np.tile(array, times)
    return whole if array.dtype == np.bool_ else (whole + 7 * number_of_part).astype(array.dtype)


def _used(program: Program, value: Value) -> Value:
    """Return `value`, its transpose, or its product with itself."""
    if value.element != "i32" or len(value.shape) != 2 or 0 in value.shape:
        return value
    use = program.choices.of(("unchanged", "transposed", "product"))
    if use == "product":
        return _gram(program, value)
    if use == "transposed":
        text = f"stablehlo.transpose {value.name}, dims = [1, 0]"
        return program.op(text, value.shape[::-1], operands=(value,))
    return value


class _FromManual(Program):
    """A program whose arguments go through manual computations."""

    def argument(self, shape: Shape, element: str = "i32") -> Value:
        """Add an argument, usually behind a manual computation with collectives."""
        value = super().argument(shape, element)
        return _through(self, value) if element == "i32" and self.choices.of((True, True, False)) else value


def _through(program: Program, value: Value) -> Value:
    """Return the result of a manual computation on `value`, of the same shape."""
    if not program.free.axes:
        return value
    axes = _some_axes(program)
    body = program.inside(axes)
    dims: dict[str, int] = {}
    sizes = [*value.shape]
    for axis in axes:
        parts = program.mesh.axis_size(axis)
        dim = program.choices.of((None, *(dim for dim, size in enumerate(sizes) if size % parts == 0)))
        if dim is not None:
            sizes[dim] //= parts
            dims[axis] = dim
    inner = body.argument(tuple(sizes))
    for axis in axes:
        if program.choices.of((True, False)):
            inner = program.choices.of(KEEP_SHAPE)(body, inner, _axis_or_part(body, axis))
    for axis in axes:
        if axis not in dims:
            inner = all_reduce(body, inner, AxisRef(axis))
    inner = body.constrained(inner) if inner.shape else inner
    [result] = _computation(program, body, axes, [value], [dims], [inner], [dims])
    return result


def _inside(name: str, families: Sequence[Family]) -> Family:
    def family(program: Program) -> Program:
        return _with_body(program, families)

    family.__name__ = f"manual_{name}"
    return family


def around_manual(program: Program) -> Program:
    """Apply an operation of any family to operands from manual computations."""
    families = program.choices.of([*_GROUPS.values()])
    return program.choices.of(families)(_FromManual(program.choices, program.mesh))


def manual_in_loop(program: Program) -> Program:
    """Run a manual computation in each iteration of a loop."""
    shape = tuple(program.size(1) for _ in range(program.choices.of((1, 2))))
    value, turns = program.argument(shape), program.constant(0)
    turn = Program(program.choices, program.mesh, program.manual, f"{program.prefix}w")
    carried = turn.whole(shape)
    after = _through(turn, carried)
    type_ = value.type
    _, last = program.ops(
        f'"stablehlo.while"({turns.name}, {value.name}) ({{ ^bb0(%i: tensor<i32>, %v: {type_}): '
        "%end = stablehlo.constant dense<2> : tensor<i32> "
        "%c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1> "
        f"stablehlo.return %c : tensor<i1> }}, {{ ^bb0(%i: tensor<i32>, {carried.name}: {type_}): "
        f"%one = stablehlo.constant dense<1> : tensor<i32> %n = stablehlo.add %i, %one : tensor<i32> {turn.body} "
        f"%u = stablehlo.subtract {after.name}, {carried.name} : {type_} "
        f"stablehlo.return %n, %u : tensor<i32>, {type_} }})",
        [(), shape],
        (turns, value),
    )
    return program.result(last)


_GROUPS: Mapping[str, Sequence[Family]] = {
    "reshards": RESHARDS,
    "elementwise": ELEMENTWISE,
    "shaping": SHAPING,
    "indexing": INDEXING,
    "reductions": REDUCTIONS,
    "contractions": CONTRACTIONS,
    "annotated": ANNOTATED,
    "windows": WINDOWS,
    "linear_algebra": LINEAR_ALGEBRA,
    "control_flow": CONTROL_FLOW,
}
_BODIES = [_inside(name, families) for name, families in _GROUPS.items()]
MANUAL: list[Family] = [
    *_BODIES,
    _inside("nested", [*_BODIES, manual_in_loop]),
    around_manual,
    manual_in_loop,
]
