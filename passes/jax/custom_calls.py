"""Custom calls, whose code is in libraries: these are made ready, and a call that none of them has is told."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import jax
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import op_error
from sdy.ir.walking import operations_of
from sdy.passes.jax.jax_internals import initialize_libraries
from sdy.passes.jax.python_callbacks import callback_problem
from sdy.stablehlo.custom_call import CustomCallOp


def prepare_custom_calls(module: ModuleOp) -> None:
    """Make ready what the custom calls of `module` call, which jax does only where it lowers such a call itself."""
    targets = {op.call_target_name.data for op in operations_of(module, CustomCallOp)}
    if targets:
        initialize_libraries(targets)


@contextmanager
def wrong_calls_told(module: ModuleOp) -> Generator[None]:
    """Tell with its place the custom call of `module` for which XLA refuses to compile what the `with` block has.

    Which targets there are only XLA can say: some it compiles itself, others are in libraries of its own or of plugins.
    Raises DiagnosticError, also for a call of a Python function, which a module does not hold. What XLA refuses for
    another reason it raises itself.
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
