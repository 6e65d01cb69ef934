"""Custom calls of jax that call Python functions, which no text can hold: they number those of a list at their side."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, ModuleOp, Signedness

from sdy.diagnostics import DiagnosticError, op_error
from sdy.dialect.attributes import SHARDING
from sdy.ir.walking import operations, operations_of
from sdy.stablehlo.custom_call import CustomCallOp

_CONFIG = "mhlo.backend_config"


def calls_python(target: str) -> bool:
    """Whether a custom call of this name calls a Python function: `xla_ffi_python_cpu_callback` for one."""
    return "_python_" in target and target.endswith("_callback")


def let_each_device_call(module: ModuleOp) -> None:
    """Let each device call, with its part, the functions that are for that, which jax too says are called by one."""
    for op in operations_of(module, CustomCallOp):
        if "_partitioned_python_" in op.call_target_name.data:
            op.attributes.pop(SHARDING, None)


def renumber_callbacks(module: ModuleOp, first: int) -> None:
    """Let the calls of Python functions in `module` number those of a list that holds `first` others before them.

    Before, where `first` is 2::

        stablehlo.custom_call @xla_ffi_python_cpu_callback(%0) {mhlo.backend_config = {index = 0 : ui64}}

    After::

        stablehlo.custom_call @xla_ffi_python_cpu_callback(%0) {mhlo.backend_config = {index = 2 : ui64}}
    """
    for op in operations_of(module, CustomCallOp):
        if calls_python(op.call_target_name.data):
            config = op.attributes[_CONFIG]
            assert isinstance(config, DictionaryAttr)
            index = config.data["index"]
            assert isinstance(index, IntegerAttr)
            moved = IntegerAttr(index.value.data + first, IntegerType(64, Signedness.UNSIGNED))
            op.attributes[_CONFIG] = DictionaryAttr({**config.data, "index": moved})


def callback_problem(module: ModuleOp) -> DiagnosticError | None:
    """Why `module` alone cannot be run: it calls a Python function, as what `jax.debug.print` is lowered to does."""
    for op in operations(module):
        if isinstance(op, CustomCallOp) and calls_python(op.call_target_name.data):
            return op_error(op, "calls a Python function, which a module does not hold: sdy.jit runs such a program")
    return None
