"""A large stack for what nests deeply.

The parser, the verifier and the printer call themselves once for each region, array or parenthesis that a text nests.
Python stops at a thousand calls within calls; a program may well nest more. What finds its stack too small is then done
in a thread that has a larger one.
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
_MOST_CALLS = 400_000
"""Of calls within calls: few enough for the stack whatever they are, enough for tens of thousands of regions."""

_SHALLOW = 50
"""So many regions in regions need no larger stack, whatever is done to them."""

_SECONDS_BETWEEN_LOOKS = 0.1

_one_at_a_time = threading.Lock()
_here = threading.local()


def has_large_stack() -> bool:
    """Whether the caller already runs on the large stack."""
    return getattr(_here, "has_large_stack", False)


def on_large_stack(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on a large stack, and wait for it; an interrupt of the wait interrupts the function."""
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

    with _one_at_a_time:  # what is changed here holds for all threads
        calls = sys.getrecursionlimit()
        stack_bytes = threading.stack_size(_STACK_BYTES)
        worker = threading.Thread(target=work, daemon=True)
        try:
            sys.setrecursionlimit(max(calls, _MOST_CALLS))
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
            # Python does not see an interrupt that comes just before it begins to wait until it has waited.
            while not finished.wait(_SECONDS_BETWEEN_LOOKS):
                pass
            return
        except KeyboardInterrupt:
            if worker.ident is None or finished.is_set():
                raise
            pythonapi.PyThreadState_SetAsyncExc(c_ulong(worker.ident), py_object(KeyboardInterrupt))


def again_on_large_stack(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function whose stack is too small start again on a large one. It must not have changed anything.

    It raises DiagnosticError where even that is not enough.
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
    """Call a function that works on what `top` nests, on a large stack if that is deep.

    Raises DiagnosticError where even that is not enough.
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
        if depth > _SHALLOW:
            return True
    return False
