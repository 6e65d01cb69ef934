"""Dialects of other packages, found by the entry points that their metadata names.

    [project.entry-points."sdy.dialects"]
    smooth = "smooth.dialect:load"

The entry point is called like the dialect. Its function is called once, when something of the dialect is first met: it
registers the sharding rules and the meaning of the operations, and returns the dialect, which is their syntax.
"""

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING, cast

from xdsl.ir import Dialect

from sdy.diagnostics import DiagnosticError, error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sdy.dialects"
"""The group of the entry points."""

_lock = RLock()
_waiting: dict[str, "EntryPoint"] | None = None
_loaded: dict[str, Dialect] = {}


def outside_dialect(name: str) -> Dialect | None:
    """The dialect called `name` of another package that is installed; None where there is none.

    Raises DiagnosticError where the package's function fails, or gives what is no dialect of this name.
    """
    with _lock:
        waiting = _entry_points()
        # It is no longer waiting while its function runs, which asks for it where it registers rules.
        if (entry := waiting.pop(name, None)) is not None:
            try:
                _loaded[name] = _load(entry)
            except BaseException:
                waiting[name] = entry
                raise
        return _loaded.get(name)


def _entry_points() -> dict[str, "EntryPoint"]:
    global _waiting
    if _waiting is None:
        from importlib.metadata import entry_points

        _waiting = {entry.name: entry for entry in entry_points(group=GROUP)}
    return _waiting


def _load(entry: "EntryPoint") -> Dialect:
    try:
        dialect = cast(Callable[[], object], entry.load())()
    except DiagnosticError:
        raise
    except Exception as problem:
        raise _refusal(entry, f"failed with {type(problem).__name__}: {problem}") from problem
    if not isinstance(dialect, Dialect):
        raise _refusal(entry, f"gave {dialect!r}: it has to return an xDSL Dialect")
    if dialect.name != entry.name:
        raise _refusal(entry, f"gave the dialect '{dialect.name}': call the entry point as the dialect is called")
    return dialect


def _refusal(entry: "EntryPoint", what: str) -> DiagnosticError:
    package = f" of package '{entry.dist.name}'" if entry.dist else ""
    return error(None, f"entry point '{entry.name} = {entry.value}'{package} in the group '{GROUP}' {what}")
