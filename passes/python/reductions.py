"""Reductions, windows and sorts."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, Region, SSAValue

from sdy import stablehlo
from sdy.ir.shapes import shape
from sdy.passes.python.comparators import order_of
from sdy.passes.python.expressions import Expression, Item, call, index, method, sizes, tuple_of
from sdy.passes.python.literals import dtype_of
from sdy.passes.python.scope import Printer, Scope
from sdy.passes.python.shaping import reshaped
from sdy.passes.spmd.shards.elements import identities_of, is_constant
from sdy.stablehlo.attributes.enums import ComparisonDirection
from sdy.stablehlo.checks.windows import padding_pairs


@dataclass(frozen=True)
class Reducer:
    """The Python names of a reduction by a known operation."""

    method: str
    """The name of the method, or an empty string without one."""
    primitive: str
    function: str
    any_type: bool = False
    """True if the method keeps the element type of every array; a sum widens narrow ones."""


REDUCERS: dict[type[Operation], Reducer] = {
    stablehlo.AddOp: Reducer("sum", "lax.reduce_sum", "lax.add"),
    stablehlo.AndOp: Reducer("all", "lax.reduce_and", "lax.bitwise_and"),
    stablehlo.MaxOp: Reducer("max", "lax.reduce_max", "lax.max", any_type=True),
    stablehlo.MinOp: Reducer("min", "lax.reduce_min", "lax.min", any_type=True),
    stablehlo.MulOp: Reducer("prod", "lax.reduce_prod", "lax.mul"),
    stablehlo.OrOp: Reducer("any", "lax.reduce_or", "lax.bitwise_or"),
    stablehlo.XorOp: Reducer("", "lax.reduce_xor", "lax.bitwise_xor"),
}

_SUMMED_AS_IS = ("float32", "float64", "complex64", "complex128")
"""The element types that `jnp.sum` neither widens nor computes in another type."""


def reducer_of(body: Region, values: Sequence[SSAValue]) -> Reducer | None:
    """Return the known reduction of one tensor by `body`; None if there are several, or it is another one."""
    types = [dtype_of(value) for value in values]
    ops = [*body.block.ops]
    known = REDUCERS.get(type(ops[0])) if len(types) == 1 and len(ops) == 2 else None
    return known if known is not None and {*ops[0].operands} == {*body.block.args} else None


def start_is_neutral(body: Region, start: SSAValue) -> bool:
    """Return whether the initial value of a reduction changes nothing."""
    from sdy.stablehlo.checks.shape_checks import tensor_type

    identities = identities_of(body, [tensor_type(start).element_type])
    return identities is not None and is_constant(start, identities[0])


def _reduce(op: stablehlo.ReduceOp, scope: Scope) -> Expression:
    dims = op.dimensions.get_values()
    known = reducer_of(op.body, op.inputs)
    if known is not None and start_is_neutral(op.body, op.init_values[0]):
        if all(shape(op.inputs[0].type)[dim] == 1 for dim in dims):
            source = scope.source(op.inputs[0])
            return reshaped(scope.of(source), shape(source.type), shape(op.results[0].type))
        value, dtype = scope.of(op.inputs[0]), dtype_of(op.inputs[0])
        boolean = known.method in ("all", "any")
        if known.any_type or (dtype.name == "bool" if boolean else dtype.name in _SUMMED_AS_IS):
            every = len(dims) == len(shape(op.inputs[0].type))
            axes: Item = str(dims[0]) if len(dims) == 1 else sizes(dims)
            return method(value, known.method, **({} if every else {"axis": axes}))
        return call(known.primitive, value, sizes(dims))
    return call("lax.reduce", *_inputs(scope, op.inputs, op.init_values), reducer_function(scope, op.body), sizes(dims))


def _inputs(scope: Scope, *groups: Sequence[SSAValue]) -> list[Item]:
    """Return each group of values as one argument: a value, or a tuple of several."""
    return [scope.of(group[0]) if len(group) == 1 else tuple_of(map(scope.of, group)) for group in groups]


def reducer_function(scope: Scope, body: Region) -> str:
    """Return the name of a function with the body of a reduction, of two values or of two tuples of values."""
    count = len(body.block.args) // 2
    if count == 1 and (known := reducer_of(body, body.block.args[:1])) is not None:
        return known.function
    name, inner = scope.names.new("combine"), scope.inner()
    texts = "xy" if count == 1 else "x" * count + "y" * count
    parameters = [inner.name(argument, text) for argument, text in zip(body.block.args, texts, strict=True)]
    if count > 1:
        pairs = [parameters[:count], parameters[count:]]
        parameters = [scope.names.new("left"), scope.names.new("right")]
        for names, parameter in zip(pairs, parameters, strict=True):
            inner.unpack(names, parameter)
    inner.write_body(body.block)
    scope.define(name, parameters, inner)
    return name


def _reduce_window(op: stablehlo.ReduceWindowOp, scope: Scope) -> Expression:
    window = [*op.window_dimensions.get_values()]
    ones = [1] * len(window)
    strides = ones if op.window_strides is None else [*op.window_strides.get_values()]
    pairs = padding_pairs(op.padding) or [(0, 0)] * len(window)
    options: dict[str, Item] = {}
    for name, values in (("base_dilation", op.base_dilations), ("window_dilation", op.window_dilations)):
        if values is not None and {*values.get_values()} != {1}:
            options[name] = sizes(values.get_values())
    inputs = _inputs(scope, op.inputs, op.init_values)
    function = reducer_function(scope, op.body)
    return call(
        "lax.reduce_window", *inputs, function, sizes(window), sizes(strides), tuple_of(map(sizes, pairs)), **options
    )


def _select_and_scatter(op: stablehlo.SelectAndScatterOp, scope: Scope) -> Expression:
    """Return the gradient of the maxima or minima of windows, which is what JAX lowers to this operation."""
    chooses, dtype = op.select.block.first_op, dtype_of(op.operand)
    direction = chooses.comparison_direction.data if isinstance(chooses, stablehlo.CompareOp) else None
    is_sum = reducer_of(op.scatter, [op.source]) is REDUCERS[stablehlo.AddOp] and is_constant(op.init_value, 0)
    if direction is None or direction not in _POOLS or not is_sum or dtype.kind in "iub":
        raise NotImplementedError("it is no gradient of the maxima or minima of windows")
    function, start = _POOLS[direction]
    ones = [1] * len(shape(op.operand.type))
    window, strides = (
        ones if values is None else [*values.get_values()] for values in (op.window_dimensions, op.window_strides)
    )
    pairs = padding_pairs(op.padding) or [(0, 0)] * len(ones)
    name, argument, inner = scope.names.new("pool"), scope.names.new("x"), scope.inner()
    options = (sizes(window), sizes(strides), tuple_of(map(sizes, pairs)))
    inner.write("return", call("lax.reduce_window", argument, start, function, *options))
    scope.define(name, [argument], inner)
    gradient = scope.names.new("gradient")
    scope.unpack(["_", gradient], call("jax.vjp", name, scope.of(op.operand)))
    return index(call(gradient, scope.of(op.source)), "0")


_POOLS = {
    ComparisonDirection.GE: ("lax.max", "-jnp.inf"),
    ComparisonDirection.LE: ("lax.min", "jnp.inf"),
}
"""The reduction and its start, by the comparison that selects an element of a window."""


def _sort(op: stablehlo.SortOp, scope: Scope) -> Expression:
    dim = op.dimension.value.data
    order = order_of(op)
    stable = bool(op.is_stable.value.data)
    values = [*map(scope.of, op.inputs)]
    if not order.descending:
        options: dict[str, Item] = {"dimension": str(dim)}
        if not stable:
            options["is_stable"] = "False"
        if order.keys > 1:
            options["num_keys"] = str(order.keys)
        return call("lax.sort", values[0] if len(values) == 1 else tuple_of(values), **options)
    permutation = scope.names.new("order")
    scope.write(permutation, call("jnp.argsort", values[0], axis=str(dim), descending="True"))
    taken = [call("jnp.take_along_axis", value, permutation, axis=str(dim)) for value in values]
    return taken[0] if len(taken) == 1 else tuple_of(taken)


REDUCTIONS: dict[type[Operation], Printer] = {
    stablehlo.ReduceOp: _reduce,
    stablehlo.ReduceWindowOp: _reduce_window,
    stablehlo.SelectAndScatterOp: _select_and_scatter,
    stablehlo.SortOp: _sort,
}
