"""Functions of a module that are JAX's own, to be printed as calls of `jnp`, `jax.nn` and others.

JAX lowers `jnp.argmax` to a function `@argmax`. Its calls are printed as `jnp.argmax` if that, lowered for the same
arguments, has the same operations; otherwise the function is printed with its body.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import jax
import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from sdy.dialect.attributes import SHARDING_RULE
from sdy.ir.editing import erase, replace
from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import functions, main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.common.properties import is_pure
from sdy.passes.python.literals import optional_dtype_of
from sdy.passes.python.names import LibraryFunction
from sdy.stablehlo import ReduceOp
from sdy.stablehlo.elementwise import ConvertOp
from sdy.text import format, parse

NAMESPACES = {
    "jnp": "numpy",
    "jax.nn": "nn",
    "jnp.linalg": "numpy.linalg",
    "jnp.fft": "numpy.fft",
    "jax.random": "random",
    "lax": "lax",
}
"""The modules of JAX in which functions are looked up, by their names in the file."""

_SYMBOL = re.compile(r"_*(.+?)(_\d+)?")
"""The symbol of a function: its name in Python, with underscores before and a number behind."""


_RANDOM: Mapping[str, tuple[str, Mapping[str, float | None]]] = {
    "bernoulli": ("bernoulli", {"p": 0.5}),
    "exponential": ("exponential", {}),
    "gumbel": ("gumbel", {}),
    "laplace": ("laplace", {}),
    "normal": ("normal", {}),
    "randint": ("randint", {"minval": None, "maxval": None}),
    "shuffle": ("permutation", {}),
    "threefry_fold_in": ("fold_in", {}),
    "threefry_split": ("split", {}),
    "truncated_normal": ("truncated_normal", {"lower": None, "upper": None}),
    "uniform": ("uniform", {"minval": 0.0, "maxval": 1.0}),
}
"""The functions of `jax.random`, by the names that they have in a module, and their last operands with defaults."""


_MOMENTS = frozenset({"std", "var"})


def library_functions(module: ModuleOp, *, x64: bool) -> dict[str, LibraryFunction]:
    """Return the functions of `module` that are JAX's own, by their symbols.

    Args:
        module: The module.
        x64: True if the file enables 64-bit numbers, on which types of results depend.
    """
    inlined = module.clone()
    inline_calls(inlined)
    main = main_function(inlined)
    # As in the process that runs the file, with JAX's configuration by default.
    with jax.enable_x64(x64), jax.default_matmul_precision(None), jax.threefry_partitionable(True):
        equal = {each.sym_name.data: _equal(each) for each in functions(inlined) if each is not main}
    return {symbol: found for symbol, found in equal.items() if found is not None}


def _operations_text(function: FuncOp) -> str:
    """Return the text of the operations of `function`, without the sharding rules of custom calls.

    Operations without uses, and converts to the same type, of numbers that JAX types weakly, are left out.
    """
    for op in reversed([*operations(function)]):
        op.attributes.pop(SHARDING_RULE, None)
        if isinstance(op, ConvertOp) and op.operand.type == op.result.type:
            replace(op, [op.operand])
        elif op.results and is_pure(op) and not any(result.uses for result in op.results):
            erase(op)
    function.sym_name = StringAttr("function")
    function.sym_visibility = function.arg_attrs = function.res_attrs = None
    return format(function)


def _equal(function: FuncOp) -> LibraryFunction | None:
    """Return the function of JAX that has the operations of `function`, whose calls are inlined."""
    dtypes = [dtype for argument in function.args if (dtype := optional_dtype_of(argument)) is not None]
    if len(dtypes) != len(function.args):
        return None
    types = [(shape(argument.type), dtype) for argument, dtype in zip(function.args, dtypes, strict=True)]
    # A scalar may be a Python number, which JAX types weakly: the module does not show it. The file has typed scalars,
    # which promote as a number does only if all types are equal; booleans are not promoted.
    promoted = {dtype for dtype in dtypes if dtype != np.bool_}
    choices = [
        [jax.ShapeDtypeStruct(dims, dtype, weak_type=weak and not dims) for dims, dtype in types]
        for weak in ((False, True) if len(promoted) == 1 else (False,))
    ]
    candidates = [*_candidates(function)]
    wanted = _operations_text(function) if candidates else ""
    for candidate in candidates:
        if any(_has_operations(candidate, arguments, wanted) for arguments in choices):
            return candidate
    return None


def _candidates(function: FuncOp) -> Iterator[LibraryFunction]:
    """Yield the functions of JAX with the name of `function`, with the keyword arguments that its types allow."""
    matched = _SYMBOL.fullmatch(function.sym_name.data)
    name = matched[1] if matched is not None else ""
    if name in _RANDOM:
        yield from _random_candidates(function, *_RANDOM[name])
        return
    if name in _MOMENTS:
        yield from _moment_candidates(function, name)
        return
    ranks = [len(shape(argument.type)) for argument in function.args]
    results = [shape(kind) for kind in function.function_type.outputs]
    for namespace, path in NAMESPACES.items():
        if not callable(getattr(attrgetter(path)(jax), name, None)):
            continue
        yield LibraryFunction(f"{namespace}.{name}")
        for axis in range(max(ranks, default=0)):
            yield LibraryFunction(f"{namespace}.{name}", {"axis": axis})
            if name == "dynamic_index_in_dim":
                yield LibraryFunction(f"{namespace}.{name}", {"axis": axis, "keepdims": False})
        if results and results[0]:
            yield LibraryFunction(f"{namespace}.{name}", {"num_classes": results[0][-1]})


def _moment_candidates(function: FuncOp, name: str) -> Iterator[LibraryFunction]:
    """Yield the function of `jax.numpy` over the dimensions that `function` reduces; its last operand is a number."""
    reductions = [op for op in operations(function) if isinstance(op, ReduceOp)]
    for dims in {tuple(op.dimensions.get_values()) for op in reductions}:
        axis = dims[0] if len(dims) == 1 else dims
        for keywords in ({"axis": axis}, {"axis": axis, "keepdims": True}):
            yield LibraryFunction(f"jnp.{name}", keywords, {"correction": 0})


def _random_candidates(function: FuncOp, name: str, operands: Mapping[str, float | None]) -> Iterator[LibraryFunction]:
    """Yield the function of `jax.random` with a result of the shape and type of that of `function`."""
    if len(function.function_type.outputs) != 1:
        return
    terminator = function.get_return_op()
    assert terminator is not None
    (result,) = terminator.operands
    dims, dtype = shape(result.type), optional_dtype_of(result)
    for keywords in ({}, {"num": dims[0]} if dims else {}, {"shape": dims}, {"shape": dims, "dtype": dtype}):
        yield LibraryFunction(f"jax.random.{name}", keywords, operands)


def _has_operations(candidate: LibraryFunction, arguments: Sequence[jax.ShapeDtypeStruct], wanted: str) -> bool:
    """Return whether a call of `candidate` is lowered to the operations whose text is `wanted`."""
    namespace, _, name = candidate.name.rpartition(".")
    called = getattr(attrgetter(NAMESPACES[namespace])(jax), name)

    def call(*operands: Any) -> Any:
        positional, named = candidate.arguments(operands)
        return called(*positional, **candidate.keywords, **named)

    try:
        text = jax.jit(call).lower(*arguments).as_text()
    except Exception:
        return False
    lowered = parse(text)
    inline_calls(lowered)
    return _operations_text(main_function(lowered)) == wanted
