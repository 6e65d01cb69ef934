"""Modules for other compilers: without the SDY dialect, or with its meshes inlined."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.ir.companions import clone
from sdy.passes.common.inline_meshes import inline_meshes
from sdy.passes.partitioning.plain import drop_dialect


def without_shardings(module: ModuleOp, *kept: type[Operation]) -> ModuleOp:
    """Return a copy of `module` after `drop_shardings`."""
    module = clone(module)
    drop_shardings(module, *kept)
    return module


def drop_shardings(module: ModuleOp, *kept: type[Operation]) -> None:
    """Remove the SDY dialect from `module`, and all attributes of arguments and results, in place.

    Operations of the classes `kept` stay. Raises DiagnosticError at any other operation that has a meaning only on
    several devices.
    """
    drop_dialect(module, *kept)
    _drop_signature_attributes(module)


def for_xla(module: ModuleOp) -> ModuleOp:
    """Return a copy of `module` that can be merged into another module: with inlined meshes.

    The arguments and results of its functions have no attributes; the caller's have the shardings.
    """
    module = clone(module)
    inline_meshes(module)
    _drop_signature_attributes(module)
    return module


def _drop_signature_attributes(module: ModuleOp) -> None:
    for op in module.ops:
        if isinstance(op, FuncOp):
            op.arg_attrs = op.res_attrs = None
