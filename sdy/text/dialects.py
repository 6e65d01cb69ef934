"""The dialects that programs are written in, each loaded when something of it is first read."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect

from sdy.ir.families import FamilyContext

_DIALECTS = {
    "func": ("xdsl.dialects.func", "Func"),
    "arith": ("xdsl.dialects.arith", "Arith"),
    "math": ("xdsl.dialects.math", "Math"),
    "tensor": ("xdsl.dialects.tensor", "Tensor"),
    "linalg": ("xdsl.dialects.linalg", "Linalg"),
    "sdy": ("sdy.dialect", "SDY"),
    "stablehlo": ("sdy.stablehlo", "STABLEHLO"),
    "chlo": ("sdy.stablehlo.chlo", "CHLO"),
    "quant": ("sdy.stablehlo.types.quantized", "QUANT"),
    "sparse_tensor": ("sdy.stablehlo.types.sparse", "SPARSE_TENSOR"),
}


def context(*, allow_unregistered: bool = False) -> FamilyContext:
    """A context that knows the dialects; with `allow_unregistered`, what belongs to no dialect is kept as it is."""
    made = _prototype().clone()
    made.allow_unregistered = allow_unregistered
    return made


@cache
def _prototype() -> FamilyContext:
    """The context of which all are copies: to make one takes many times as long."""
    made = FamilyContext()
    made.load_dialect(Builtin)
    for name, (module, attribute) in _DIALECTS.items():
        made.register_dialect(name, _loader(module, attribute))
    return made


def _loader(module: str, attribute: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(module), attribute)
