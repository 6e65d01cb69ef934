"""Names of functions and values in Python."""

import ast
import builtins
import keyword
import linecache
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue

from sdy.diagnostics import Location, is_library, location_of

_RESERVED = {"NamedSharding", "P", "base64", "jax", "jnp", "lapack", "lax", "mesh", "np", "total_order", "unsupported"}
"""Names that the file itself uses."""

_BUILTINS = frozenset(dir(builtins))

_T = TypeVar("_T")

_AMBIGUOUS = {"I", "O", "l"}


@dataclass(frozen=True)
class LibraryFunction:
    """A function of JAX, as the file calls it."""

    name: str
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments: numbers, tuples of them, and element types."""
    named: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """The last operands, which are keyword arguments: their names and defaults, None without one."""

    def arguments(self, operands: Sequence[_T]) -> tuple[Sequence[_T], Mapping[str, _T]]:
        """Return the positional and the keyword arguments that `operands` are."""
        positional = len(operands) - len(self.named)
        return operands[:positional], dict(zip(self.named, operands[positional:], strict=True))


@dataclass(frozen=True, eq=False)
class LibraryCall:
    """A call of a function of JAX that stands for operations."""

    function: LibraryFunction
    operand: SSAValue
    inside: frozenset[Operation]
    """The operations."""


def identifier(text: str, default: str = "value") -> str:
    """Return a Python identifier made of the letters, digits and underscores of `text`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not name:
        return default
    if name[0].isdigit():
        name = f"{default}_{name}"
    taken = keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in _RESERVED | _BUILTINS | _AMBIGUOUS
    return f"{name}_" if taken else name


class Names:
    """The names in use: each is given once, the later ones with a number."""

    def __init__(self, taken: "Names | None" = None):
        self._counts: Counter[str] = Counter(taken._counts if taken is not None else ())

    def new(self, text: str, default: str = "value") -> str:
        """Return a name like `text` that is not in use."""
        base = identifier(text, default)
        name = base
        while self._counts[name]:
            self._counts[base] += 1
            name = f"{base}_{self._counts[base]}"
        self._counts[name] += 1
        return name


def place_of(op: Operation) -> Location | None:
    """Return the line of the program that `op` came from; None if it came from a library or from no file."""
    location = location_of(op)
    return None if location is None or location.line < 1 or is_library(location.filename) else location


@lru_cache(maxsize=2**12)
def source_line(filename: str, line: int) -> str:
    """Return a line of a source file without indentation and comment; empty if the file is not there."""
    return linecache.getline(filename, line).split("  #")[0].strip()


@lru_cache(maxsize=2**12)
def assigned_names(filename: str, line: int) -> Sequence[str]:
    """Return the variables to which a line of a source file assigns values, several if it unpacks them."""
    text = source_line(filename, line)
    try:
        tree = ast.parse(text).body
    except (SyntaxError, ValueError):
        match = re.match(r"(\w+(?:, \w+)*) = ", text)
        return match[1].split(", ") if match else ()
    match tree:
        case [ast.Assign(targets=[target])] | [ast.AnnAssign(target=target)]:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
        case _:
            return ()
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) else ()
