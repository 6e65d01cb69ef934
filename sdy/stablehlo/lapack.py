"""The calls of LAPACK's routines that JAX makes on a CPU: what their targets and arguments are."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from sdy.diagnostics import op_error
from sdy.stablehlo.custom_call import CustomCallOp

TRIANGULAR_SOLVES = tuple(f"lapack_{kind}trsm_ffi" for kind in "sdcz")
"""The targets that are `stablehlo.triangular_solve`; the letter after `lapack_` is that of the element type."""


def letter(op: CustomCallOp, name: str) -> str:
    """An argument of the routine that is one of LAPACK's letters, which are passed by their number.

    Raises DiagnosticError where the call has none of this name.
    """
    config = op.attributes.get("mhlo.backend_config", op.backend_config)
    value = config.data.get(name) if isinstance(config, DictionaryAttr) else None
    if not isinstance(value, IntegerAttr):
        raise op_error(op, f"has no '{name}' in its backend_config")
    return chr(value.value.data)


def is_on_left(op: CustomCallOp) -> bool:
    """Whether the matrix of a triangular solve is on the left of what is solved for."""
    return letter(op, "side") == "L"
