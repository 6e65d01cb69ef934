"""A module for another compiler: without anything of the SDY dialect, or with all that it says but its symbols."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from sdy.ir.companions import clone
from sdy.passes.common.inline_meshes import inline_meshes
from sdy.passes.partitioning.plain import drop_dialect


def without_shardings(module: ModuleOp, *kept: type[Operation]) -> ModuleOp:
    """A copy of `module` from which `drop_shardings` has taken what it takes."""
    module = clone(module)
    drop_shardings(module, *kept)
    return module


def drop_shardings(module: ModuleOp, *kept: type[Operation]) -> None:
    """Take what is of the SDY dialect out of `module`, in place, and all that is said of arguments and results.

    Operations of the classes `kept` stay. Of arguments and results, who calls this knows more.

    Raises DiagnosticError at another one that only has a meaning on several devices.
    """
    drop_dialect(module, *kept)
    _forget_signatures(module)


def for_xla(module: ModuleOp) -> ModuleOp:
    """A copy of `module` that can be put into another one: its meshes stand where they are used.

    The arguments and results of its functions have no shardings, which the caller's have.
    """
    module = clone(module)
    inline_meshes(module)
    _forget_signatures(module)
    return module


def _forget_signatures(module: ModuleOp) -> None:
    for op in module.ops:
        if isinstance(op, FuncOp):
            op.arg_attrs = op.res_attrs = None
