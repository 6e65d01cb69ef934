"""What Python compiles to make dataclasses is kept in a file, beside the bytecode of this one.

Each start of a command makes 350 dataclasses, most of them xDSL's, for which Python compiles the text of 1,700 methods.
That is a third of a start, and the texts are the same each time. Python keeps bytecode of modules, but none of these.
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
"""So many texts are kept, more than two versions of all commands have."""


class DataclassCode:
    """The code of texts that Python has executed to make dataclasses, now or in a process before.

    Once it is `installed`, dataclasses are made with it; `save` keeps it for processes to come.
    """

    def __init__(self, path: Path):
        self._path = path
        self._kept = _read(path)
        self._new: dict[str, CodeType] = {}

    @classmethod
    def installed(cls) -> "DataclassCode":
        """That of the file where it belongs, for the rest of the process, which is for a command alone."""
        code = cls(Path(cache_from_source(__file__)).with_suffix(".dataclasses"))
        setattr(dataclasses, "exec", code.execute)  # noqa: B010  as Python finds it before its own
        return code

    def execute(self, text: str, names: dict[str, Any] | None = None, made: dict[str, Any] | None = None, /) -> None:
        """Python's `exec`."""
        code = self._kept.get(text) or self._new.get(text)
        if code is None:
            code = self._new[text] = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, names, made)

    def save(self) -> None:
        """Write what is new, if Python may write bytecode and the file can be written."""
        if not self._new or sys.dont_write_bytecode:
            return
        all_of_it = {**self._kept, **self._new}
        entries = all_of_it if len(all_of_it) <= _MOST else self._new
        written = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            written.write_bytes(MAGIC_NUMBER + marshal.dumps(entries))
            written.replace(self._path)


def _read(path: Path) -> dict[str, CodeType]:
    """What is in a file; nothing, where there is none that this Python can read."""
    try:
        content = path.read_bytes()
        if not content.startswith(MAGIC_NUMBER):
            return {}
        kept: Any = marshal.loads(memoryview(content)[len(MAGIC_NUMBER) :])
    except (OSError, EOFError, TypeError, ValueError):
        return {}
    return cast("dict[str, CodeType]", kept) if isinstance(kept, dict) else {}
