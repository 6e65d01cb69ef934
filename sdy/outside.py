"""What other packages bring, found by the entry points that their metadata names: dialects, and rules of custom calls.

    [project.entry-points."sdy.dialects"]
    smooth = "smooth.dialect:load"

The entry point is called like the dialect. Its function is called once, when something of the dialect is first met: it
registers the sharding rules and the meaning of the operations, and returns the dialect, which is their syntax.

    [project.entry-points."sdy.custom_calls"]
    flash_attention = "my_kernels.rules:FLASH_ATTENTION"
    "my_kernels.paged_update" = "my_kernels.rules:RULES"

The entry point is called like the target. It is the annotation of its calls, a string, or a dictionary in which the
target has one; it is loaded when such a call is first met.
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
"""The groups of the entry points."""

_lock = RLock()
_waiting: dict[str, dict[str, "EntryPoint"]] = {}
_loaded: dict[str, Dialect] = {}


def outside_dialect(name: str) -> Dialect | None:
    """The dialect called `name` of another package that is installed; None where there is none.

    Raises DiagnosticError where the package's function fails, or gives what is no dialect of this name.
    """
    with _taken(DIALECTS, name) as entry:
        if entry is not None:
            _loaded[name] = _dialect(entry)
        return _loaded.get(name)


@contextmanager
def outside_annotation(target: str) -> Generator[str | None]:
    """The annotation that another package has for the custom calls of `target`, once; None where there is none.

    Raises DiagnosticError where the package gives no annotation, or the `with` block refuses it with ValueError.
    """
    with _taken(CUSTOM_CALLS, target) as entry:
        if entry is None:
            yield None
            return
        annotation = _annotation(entry)
        try:
            yield annotation
        except ValueError as problem:
            raise _refusal(entry, f"gave `{annotation}`: {problem}") from problem


@contextmanager
def _taken(group: str, name: str) -> Generator["EntryPoint | None"]:
    """The entry point that waits to be loaded, if one does; it waits again where the `with` block fails.

    It is not waiting meanwhile, as what is loaded asks for it where it registers rules.
    """
    with _lock:
        waiting = _entry_points(group)
        entry = waiting.pop(name, None)
        try:
            yield entry
        except BaseException:
            if entry is not None:
                waiting[name] = entry
            raise


def _entry_points(group: str) -> dict[str, "EntryPoint"]:
    if group not in _waiting:
        from importlib.metadata import entry_points

        _waiting[group] = {entry.name: entry for entry in entry_points(group=group)}
    return _waiting[group]


def _dialect(entry: "EntryPoint") -> Dialect:
    dialect = _given(entry, lambda: cast(Callable[[], object], entry.load())())
    if not isinstance(dialect, Dialect):
        raise _refusal(entry, f"gave {dialect!r}: it has to return an xDSL Dialect")
    if dialect.name != entry.name:
        raise _refusal(entry, f"gave the dialect '{dialect.name}': call the entry point as the dialect is called")
    return dialect


def _annotation(entry: "EntryPoint") -> str:
    given = _given(entry, entry.load)
    annotation = cast(Mapping[object, object], given).get(entry.name) if isinstance(given, Mapping) else given
    if not isinstance(annotation, str):
        raise _refusal(
            entry, f"gave {given!r}: it has to be an annotation, or a dictionary with that of '{entry.name}'"
        )
    return annotation


def _given(entry: "EntryPoint", give: Callable[[], object]) -> object:
    try:
        return give()
    except DiagnosticError:
        raise
    except Exception as problem:
        raise _refusal(entry, f"failed with {type(problem).__name__}: {problem}") from problem


def _refusal(entry: "EntryPoint", what: str) -> DiagnosticError:
    package = f" of package '{entry.dist.name}'" if entry.dist else ""
    return error(None, f"entry point '{entry.name} = {entry.value}'{package} in the group '{entry.group}' {what}")
