"""A large stack for deeply nested programs.

The parser, the verifier and the printer recurse once per nested region, array or parenthesis. Python's recursion limit
is a thousand calls, which programs may exceed; the work is then repeated in a thread with a larger stack.
"""

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from ctypes import c_ulong, py_object, pythonapi
from functools import wraps
from typing import ParamSpec, TypeVar

from xdsl.ir import Operation

from sdy.diagnostics import DiagnosticError, Where, error
from sdy.ir.walking import nesting_operations

P = ParamSpec("P")
T = TypeVar("T")

_STACK_BYTES = 1 << 29
_RECURSION_LIMIT = 400_000
"""Fits in the stack whatever the frames are, and suffices for tens of thousands of nested regions."""

_SHALLOW_DEPTH = 50
"""Regions nested up to this depth never need the large stack."""

_POLL_SECONDS = 0.1

_one_at_a_time = threading.Lock()
_here = threading.local()


def has_large_stack() -> bool:
    """Return whether the caller already runs on the large stack."""
    return getattr(_here, "has_large_stack", False)


def on_large_stack(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a large stack and wait for it; a KeyboardInterrupt is passed on to the function."""
    if has_large_stack():
        return function(*args, **kwargs)
    context = copy_context()
    results: list[T] = []
    problems: list[BaseException] = []
    finished = threading.Event()

    def work() -> None:
        _here.has_large_stack = True
        try:
            results.append(context.run(function, *args, **kwargs))
        except BaseException as problem:
            problems.append(problem)
        finally:
            finished.set()

    with _one_at_a_time:  # the recursion limit and the stack size are global
        calls = sys.getrecursionlimit()
        stack_bytes = threading.stack_size(_STACK_BYTES)
        worker = threading.Thread(target=work, daemon=True)
        try:
            sys.setrecursionlimit(max(calls, _RECURSION_LIMIT))
            _run(worker, finished)
        finally:
            threading.stack_size(stack_bytes)
            sys.setrecursionlimit(calls)
    if problems:
        raise problems[0]
    return results[0]


def _run(worker: threading.Thread, finished: threading.Event) -> None:
    while True:
        try:
            if worker.ident is None:
                worker.start()
            # Python notices an interrupt that arrives just before the wait only after it: hence the polling.
            while not finished.wait(_POLL_SECONDS):
                pass
            return
        except KeyboardInterrupt:
            if worker.ident is None or finished.is_set():
                raise
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(worker.ident), py_object(KeyboardInterrupt))


def again_on_large_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run again on a large stack if its own overflows; it must be free of side effects.

    The decorated function raises DiagnosticError if the large stack overflows too.
    """

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if has_large_stack():
                raise _too_deep(None) from None
        try:
            return on_large_stack(function, *args, **kwargs)
        except RecursionError:
            raise _too_deep(None) from None

    return guarded


def on_large_stack_if_deep(top: Operation, function: Callable[[], T]) -> T:
    """Call a function that processes `top`, on a large stack if `top` is deeply nested.

    Raises:
        DiagnosticError: If the large stack overflows.
    """
    try:
        return on_large_stack(function) if _is_deep(top) else function()
    except RecursionError:
        raise _too_deep(top) from None


def _too_deep(where: Where) -> DiagnosticError:
    return error(where, "nested too deeply")


def _is_deep(top: Operation) -> bool:
    depths = {id(top.parent_op()): 0}
    for op in nesting_operations(top):
        depth = depths[id(op)] = depths[id(op.parent_op())] + 1
        if depth > _SHALLOW_DEPTH:
            return True
    return False
