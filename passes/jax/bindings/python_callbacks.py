"""Custom calls of Python callbacks, which refer by index to a list of functions outside of the module."""

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, ModuleOp, Signedness

from sdy.diagnostics import DiagnosticError, op_error
from sdy.dialect.attributes import SHARDING
from sdy.ir.walking import operations, operations_of
from sdy.stablehlo.custom_call import CustomCallOp

_CONFIG = "mhlo.backend_config"


def calls_python(target: str) -> bool:
    """Return true if `target`, such as `xla_ffi_python_cpu_callback`, calls a Python function."""
    return "_python_" in target and target.endswith("_callback")


def let_each_device_call(module: ModuleOp) -> None:
    """Drop the single-device shardings that jax sets on partitioned callbacks, so that each device calls them."""
    for op in operations_of(module, CustomCallOp):
        if "_partitioned_python_" in op.call_target_name.data:
            op.attributes.pop(SHARDING, None)


def renumber_callbacks(module: ModuleOp, first: int) -> None:
    """Add `first` to the callback indices in `module`, for callbacks appended to a list of that length.

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
    """Return an error if `module` calls a Python function, as lowered `jax.debug.print` does, and so cannot be run."""
    for op in operations(module):
        if isinstance(op, CustomCallOp) and calls_python(op.call_target_name.data):
            return op_error(op, "calls a Python function, which a module does not hold: sdy.jit runs such a program")
    return None
