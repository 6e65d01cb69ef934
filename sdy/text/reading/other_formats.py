"""Detection of input that is not MLIR text: bytecode is converted, HLO and other formats are refused."""

from sdy.diagnostics import DiagnosticError, Location, error

_BYTECODE = b"ML\xefR"
"""The magic number of MLIR bytecode, which artifacts of `jax.export` contain further in. It is not valid UTF-8."""

_EXPORTED = slice(1, 4), b"\0\0\0"
"""The bytes 1 to 3 of artifacts of `jax.export`, which start with a small 32-bit number; no text contains NUL bytes."""

_HLO = "HloModule"
_EXPECTED = "expected StableHLO as MLIR text, for example from jax.jit(f).lower(...).as_text()"


def decode_program(data: bytes, name: str) -> str:
    """Return the MLIR text of a file's bytes, converting bytecode.

    Raises:
        DiagnosticError: If the bytes are neither UTF-8 nor bytecode.
    """
    where, begins = _EXPORTED
    if _BYTECODE in data or data[where] == begins:
        from sdy.text.bytecode import text_of

        return text_of(data, name)
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        column = problem.start - data.rfind(b"\n", 0, problem.start)
        message = f"not MLIR text: byte 0x{data[problem.start]:02x} is not valid UTF-8"
        raise _format_error(Location(name, line, column), message) from None


def refuse_other_formats(text: str, name: str) -> None:
    """Raise DiagnosticError if the text is empty or HLO."""
    start = text.lstrip()
    if not start:
        raise _format_error(Location(name, 1, 1), "the file is empty")
    if start.startswith(_HLO):
        before = text[: len(text) - len(start)]
        place = Location(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise _format_error(place, "this is HLO text, not MLIR")


def _format_error(where: Location, problem: str) -> DiagnosticError:
    return error(where, f"{problem}; {_EXPECTED}")
