"""Custom calls of jax that call Python functions, which no text can hold: they number those of a list at their side."""

from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import DiagnosticError, op_error
from sdy.dialect.attributes import SHARDING
from sdy.ir.walking import operations, operations_of
from sdy.stablehlo.custom_call import CustomCallOp


def calls_python(target: str) -> bool:
    """Whether a custom call of this name calls a Python function: `xla_ffi_python_cpu_callback` for one."""
    return "_python_" in target and target.endswith("_callback")


def let_each_device_call(module: ModuleOp) -> None:
    """Let each device call, with its part, the functions that are for that, which jax too says are called by one."""
    for op in operations_of(module, CustomCallOp):
        if "_partitioned_python_" in op.call_target_name.data:
            op.attributes.pop(SHARDING, None)


def callback_problem(module: ModuleOp) -> DiagnosticError | None:
    """Why `module` alone cannot be run: it calls a Python function, as what `jax.debug.print` is lowered to does."""
    for op in operations(module):
        if isinstance(op, CustomCallOp) and calls_python(op.call_target_name.data):
            return op_error(op, "calls a Python function, which a module does not hold: sdy.jit runs such a program")
    return None
