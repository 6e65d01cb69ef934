"""What is given for MLIR text and is none, told by how it begins: bytecode, which is read, and what is refused."""

from sdy.diagnostics import DiagnosticError, Location, error

_BYTECODE = b"ML\xefR"
"""How MLIR bytecode begins, which what `jax.export` saves has further in. No text in UTF-8 has it."""

_EXPORTED = slice(1, 4), b"\0\0\0"
"""Which bytes of what `jax.export` saves are which: it begins with a small number of four bytes. No text has them."""

_HLO = "HloModule"
_WANTED = "a program is read as StableHLO in MLIR text, such as jax.jit(f).lower(...).as_text() gives"


def decoded(data: bytes, name: str) -> str:
    """The text that the bytes of the file `name` are, or that of the program in them.

    Raises DiagnosticError where they are none.
    """
    where, begins = _EXPORTED
    if _BYTECODE in data or data[where] == begins:
        from sdy.text.bytecode.conversion import text_of

        return text_of(data, name)
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        column = problem.start - data.rfind(b"\n", 0, problem.start)
        message = f"not MLIR text, the byte 0x{data[problem.start]:02x} is not UTF-8"
        raise _not_read(Location(name, line, column), message) from None


def refuse_other_formats(text: str, name: str) -> None:
    """Raise DiagnosticError where `text`, of the file `name`, cannot have been meant as MLIR."""
    start = text.lstrip()
    if not start:
        raise _not_read(Location(name, 1, 1), "the file is empty")
    if start.startswith(_HLO):
        before = text[: len(text) - len(start)]
        place = Location(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise _not_read(place, "this is HLO, XLA's own text, not MLIR")


def _not_read(where: Location, problem: str) -> DiagnosticError:
    return error(where, f"{problem}: {_WANTED}")
