"""Custom calls: load the libraries that implement them, and report calls that no library implements."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import op_error
from sdy.ir.walking import operations_of
from sdy.passes.jax.bindings.python_callbacks import callback_problem
from sdy.passes.jax.jax_internals import initialize_libraries
from sdy.stablehlo.custom_call import CustomCallOp


def prepare_custom_calls(module: ModuleOp) -> None:
    """Load the libraries of the custom calls in `module`; jax does so only if it lowers such a call itself."""
    targets = {op.call_target_name.data for op in operations_of(module, CustomCallOp)}
    if targets:
        initialize_libraries(targets)


@contextmanager
def explain_wrong_calls(module: ModuleOp) -> Generator[None]:
    """Report which custom call of `module` XLA fails to compile in the `with` block, with its location.

    Only XLA knows the available targets: it compiles some itself, and others are in libraries or plugins.

    Raises:
        DiagnosticError: XLA does not know a target, or the module calls a Python function, which it cannot hold.
    """
    if (problem := callback_problem(module)) is not None:
        raise problem
    try:
        yield
    except jax.errors.JaxRuntimeError as problem:
        calls = [op for op in operations_of(module, CustomCallOp) if _is_named(op, str(problem))]
        if not calls:
            raise
        call = max(calls, key=lambda op: len(op.call_target_name.data))
        refusal = f"calls @{call.call_target_name.data}, which XLA refuses on these devices: {problem}"
        raise op_error(call, refusal, "jax.ffi.register_ffi_target makes the function of a library known") from problem


def _is_named(op: CustomCallOp, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(op.call_target_name.data)}(?!\w)", text) is not None
