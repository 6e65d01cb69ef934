"""Source position of a function, to recognize its redefinition."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Place:
    """The names of a function and its module, its file and line, and the import spec of the module."""

    module: str
    name: str
    file: str | None
    line: int
    imported: object

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Place":
        """Return the place of `function`."""
        plain = inspect.unwrap(function)
        code = getattr(plain, "__code__", None)
        file, line = (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else (None, 0)
        imported = getattr(plain, "__globals__", {}).get("__spec__")
        name = getattr(plain, "__qualname__", type(plain).__qualname__)
        # The cells of a notebook have no file.
        return cls(plain.__module__, name, file if file and Path(file).exists() else None, line, imported)

    def is_again(self, other: "Place") -> bool:
        """Return true if the function at this place redefines the one at `other`: run again, or edited and reloaded.

        Two functions with the same name, at different lines of one import of a file, are different functions.
        """
        if (self.module, self.name) != (other.module, other.name):
            return False
        if self.file is None or other.file is None:
            return True
        return self.file == other.file and (self.line == other.line or self.imported is not other.imported)
