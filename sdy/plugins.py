"""Plugins: dialects and custom-call rules that other packages register through entry points.

    [project.entry-points."sdy.dialects"]
    smooth = "smooth.dialect:load"

The entry point has the name of the dialect. It refers to a function without arguments, which is called once, when an
operation, attribute or type of the dialect is first looked up. The function registers the sharding rules and the
interpretation of the operations, and returns the xDSL `Dialect`.

    [project.entry-points."sdy.custom_calls"]
    flash_attention = "my_kernels.rules:FLASH_ATTENTION"
    "my_kernels.paged_update" = "my_kernels.rules:RULES"

The entry point has the name of the custom call's target. It refers to the annotation of the calls, a string, or to a
dictionary from targets to annotations, and is loaded when a call of the target is first met.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, cast

from xdsl.ir import Dialect

from sdy.diagnostics import DiagnosticError, error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DIALECTS = "sdy.dialects"
CUSTOM_CALLS = "sdy.custom_calls"
"""Entry-point groups."""

_lock = RLock()
_pending: dict[str, dict[str, "EntryPoint"]] = {}
_loaded: dict[str, Dialect] = {}


def plugin_dialect(name: str) -> Dialect | None:
    """Load the dialect `name` from the installed package that registers it.

    Returns:
        The dialect, or None if no installed package registers one of this name.

    Raises:
        DiagnosticError: The package's function fails, or returns anything but a dialect of this name.
    """
    with _pending_entry_point(DIALECTS, name) as entry:
        if entry is not None:
            _loaded[name] = _dialect(entry)
        return _loaded.get(name)


@contextmanager
def plugin_annotation(target: str) -> Generator[str | None]:
    """Load the annotation that an installed package registers for custom calls of `target`.

    The annotation is loaded once: after a `with` block that succeeds, later calls yield None.

    Yields:
        The annotation, or None if no installed package registers one, or if it has been loaded before.

    Raises:
        DiagnosticError: The entry point holds no annotation, or the `with` block rejects it with ValueError.
    """
    with _pending_entry_point(CUSTOM_CALLS, target) as entry:
        if entry is None:
            yield None
            return
        annotation = _annotation(entry)
        try:
            yield annotation
        except ValueError as problem:
            raise _entry_point_error(entry, f"refers to the annotation `{annotation}`: {problem}") from problem


@contextmanager
def _pending_entry_point(group: str, name: str) -> Generator["EntryPoint | None"]:
    """Yield the entry point `name` if it has not been loaded; it counts as loaded unless the `with` block fails.

    The entry point is removed before the block runs: a plugin that registers rules looks up its own dialect.
    """
    with _lock:
        pending = _entry_points(group)
        entry = pending.pop(name, None)
        try:
            yield entry
        except BaseException:
            if entry is not None:
                pending[name] = entry
            raise


def _entry_points(group: str) -> dict[str, "EntryPoint"]:
    if group not in _pending:
        from importlib.metadata import entry_points

        _pending[group] = {entry.name: entry for entry in entry_points(group=group)}
    return _pending[group]


def _dialect(entry: "EntryPoint") -> Dialect:
    dialect = _call(entry, lambda: cast(Callable[[], object], entry.load())())
    if not isinstance(dialect, Dialect):
        raise _entry_point_error(entry, f"returned {dialect!r}; expected an xDSL Dialect")
    if dialect.name != entry.name:
        raise _entry_point_error(
            entry, f"returned the dialect '{dialect.name}'; entry point and dialect need the same name"
        )
    return dialect


def _annotation(entry: "EntryPoint") -> str:
    value = _call(entry, entry.load)
    annotation = cast(Mapping[object, object], value).get(entry.name) if isinstance(value, Mapping) else value
    if not isinstance(annotation, str):
        raise _entry_point_error(
            entry, f"refers to {value!r}; expected an annotation, or a dictionary with one for '{entry.name}'"
        )
    return annotation


def _call(entry: "EntryPoint", load: Callable[[], object]) -> object:
    """Call `load`; raise DiagnosticError naming `entry` if it fails."""
    try:
        return load()
    except DiagnosticError:
        raise
    except Exception as problem:
        raise _entry_point_error(entry, f"failed with {type(problem).__name__}: {problem}") from problem


def _entry_point_error(entry: "EntryPoint", what: str) -> DiagnosticError:
    package = f" of package '{entry.dist.name}'" if entry.dist else ""
    return error(None, f"entry point '{entry.name} = {entry.value}'{package} in the group '{entry.group}' {what}")
