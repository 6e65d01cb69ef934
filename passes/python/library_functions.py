"""Functions of a module that are JAX's own, to be printed as calls of `jnp`, `jax.nn` and others.

JAX lowers `jnp.argmax` to a function `@argmax`. Its calls are printed as `jnp.argmax` if that, lowered for the same
arguments, has the same operations; otherwise the function is printed with its body.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter

import jax
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from sdy.dialect.attributes import SHARDING_RULE
from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.passes.common.call_graph import functions, main_function
from sdy.passes.common.inline import inline_calls
from sdy.passes.python.literals import optional_dtype_of
from sdy.passes.python.names import LibraryFunction
from sdy.text import format, parse

_NAMESPACES = {
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
    with jax.enable_x64(x64), jax.default_matmul_precision(None):
        equal = {each.sym_name.data: _equal(each) for each in functions(inlined) if each is not main}
    return {symbol: found for symbol, found in equal.items() if found is not None}


def _operations_text(function: FuncOp) -> str:
    """Return the text of the operations of `function`, without the sharding rules of custom calls."""
    for op in operations(function):
        op.attributes.pop(SHARDING_RULE, None)
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
    # which promote as a number does only if all types are equal.
    choices = [
        [jax.ShapeDtypeStruct(dims, dtype, weak_type=weak and not dims) for dims, dtype in types]
        for weak in ((False, True) if len({*dtypes}) == 1 else (False,))
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
    ranks = [len(shape(argument.type)) for argument in function.args]
    results = [shape(kind) for kind in function.function_type.outputs]
    for namespace, path in _NAMESPACES.items():
        if not callable(getattr(attrgetter(path)(jax), name, None)):
            continue
        yield LibraryFunction(f"{namespace}.{name}")
        for axis in range(max(ranks, default=0)):
            yield LibraryFunction(f"{namespace}.{name}", {"axis": axis})
        if results and results[0]:
            yield LibraryFunction(f"{namespace}.{name}", {"num_classes": results[0][-1]})


def _has_operations(candidate: LibraryFunction, arguments: Sequence[jax.ShapeDtypeStruct], wanted: str) -> bool:
    """Return whether a call of `candidate` is lowered to the operations whose text is `wanted`."""
    namespace, _, name = candidate.name.rpartition(".")
    called = getattr(attrgetter(_NAMESPACES[namespace])(jax), name)
    try:
        text = jax.jit(partial(called, **candidate.keywords)).lower(*arguments).as_text()
    except Exception:
        return False
    lowered = parse(text)
    inline_calls(lowered)
    return _operations_text(main_function(lowered)) == wanted
