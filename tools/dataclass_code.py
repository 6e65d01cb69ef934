"""Persistent cache of the code objects that `dataclasses` compiles.

Each start of a command creates 350 dataclasses, most of them xDSL's, for which Python compiles the source of 1,700
methods. This takes a third of the start-up time, and Python's bytecode cache does not cover it. The cache file is next
to the bytecode of this module.
"""

import contextlib
import dataclasses
import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any, cast

_MOST = 8192
"""Maximum number of cached sources, which is more than two versions of all commands compile."""


class DataclassCode:
    """Cache of compiled dataclass methods, by source text.

    After `installed`, `dataclasses` uses the cache; `save` writes it for later processes.
    """

    def __init__(self, path: Path):
        self._path = path
        self._cached = _read(path)
        self._new: dict[str, CodeType] = {}

    @classmethod
    def installed(cls) -> "DataclassCode":
        """Create the cache and make `dataclasses` use it for the rest of the process."""
        code = cls(Path(cache_from_source(__file__)).with_suffix(".dataclasses"))
        setattr(dataclasses, "exec", code.execute)  # noqa: B010  shadows the builtin in that module
        return code

    def execute(
        self, text: str, globals_: dict[str, Any] | None = None, locals_: dict[str, Any] | None = None, /
    ) -> None:
        """Replacement for the builtin `exec`."""
        code = self._cached.get(text) or self._new.get(text)
        if code is None:
            code = self._new[text] = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, globals_, locals_)

    def save(self) -> None:
        """Write new entries to the file, unless Python must not write bytecode or the file is not writable."""
        if not self._new or sys.dont_write_bytecode:
            return
        merged = {**self._cached, **self._new}
        entries = merged if len(merged) <= _MOST else self._new
        temporary = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_bytes(MAGIC_NUMBER + marshal.dumps(entries))
            temporary.replace(self._path)


def _read(path: Path) -> dict[str, CodeType]:
    """Read a cache file; empty if it is missing, damaged, or of another version of Python."""
    try:
        content = path.read_bytes()
        if not content.startswith(MAGIC_NUMBER):
            return {}
        entries: Any = marshal.loads(memoryview(content)[len(MAGIC_NUMBER) :])
    except (OSError, EOFError, TypeError, ValueError):
        return {}
    return cast("dict[str, CodeType]", entries) if isinstance(entries, dict) else {}
