"""The registered dialects, each loaded lazily when the parser first meets it."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from sdy.ir.lazy_dialects import LazyContext

_DIALECTS = {
    "func": ("xdsl.dialects.func", "Func"),
    "arith": ("xdsl.dialects.arith", "Arith"),
    "math": ("xdsl.dialects.math", "Math"),
    "tensor": ("xdsl.dialects.tensor", "Tensor"),
    "linalg": ("xdsl.dialects.linalg", "Linalg"),
    "sdy": ("sdy.dialect", "SDY"),
    "mpmd": ("sdy.mpmd", "MPMD"),
    "stablehlo": ("sdy.stablehlo", "STABLEHLO"),
    "chlo": ("sdy.stablehlo.chlo", "CHLO"),
    "quant": ("sdy.stablehlo.types.quantized", "QUANT"),
    "sparse_tensor": ("sdy.stablehlo.types.sparse", "SPARSE_TENSOR"),
}


def context(*, allow_unregistered: bool = False) -> LazyContext:
    """Return a context with the registered dialects.

    Args:
        allow_unregistered: Whether operations, attributes and types of unregistered dialects are accepted and kept as
            text.
    """
    new = _prototype().clone()
    new.allow_unregistered = allow_unregistered
    return new


@cache
def _prototype() -> LazyContext:
    """Return the context that `context` clones: cloning is many times faster than registering the dialects."""
    prototype = LazyContext()
    prototype.load_dialect(Builtin)
    for name, (module, attribute) in _DIALECTS.items():
        prototype.register_dialect(name, _loader(module, attribute))
    return prototype


def _loader(module: str, attribute: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(module), attribute)
