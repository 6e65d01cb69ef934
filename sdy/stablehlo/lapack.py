"""Targets and arguments of the custom calls of LAPACK routines that JAX emits on CPU."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from sdy.diagnostics import op_error
from sdy.stablehlo.custom_call import CustomCallOp

TRIANGULAR_SOLVES = tuple(f"lapack_{kind}trsm_ffi" for kind in "sdcz")
"""The targets equivalent to `stablehlo.triangular_solve`; the letter after `lapack_` is that of the element type."""


def letter(op: CustomCallOp, name: str) -> str:
    """Return a character argument of the routine, which the backend_config holds as its code.

    Raises:
        DiagnosticError: If the call has no such argument.
    """
    config = op.attributes.get("mhlo.backend_config", op.backend_config)
    value = config.data.get(name) if isinstance(config, DictionaryAttr) else None
    if not isinstance(value, IntegerAttr):
        raise op_error(op, f"has no '{name}' in its backend_config")
    return chr(value.value.data)


def is_on_left(op: CustomCallOp) -> bool:
    """Return whether the matrix of a triangular solve is on the left-hand side."""
    return letter(op, "side") == "L"
