"""Conversion of bytecode to text, and of text to bytecode or HLO, by jaxlib in a subprocess.

jaxlib aborts its process on damaged bytes. A subprocess turns that into an error that names the file; it is started
only for bytecode and HLO. It runs `jaxlib_converter.py`, which imports jaxlib and nothing of this package.
"""

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xdsl.ir import Operation

from sdy.diagnostics import Location, error, op_error
from sdy.ir.walking import operations
from sdy.text.bytecode.jaxlib_converter import REFUSED
from sdy.text.printing.versions import installed_syntax

_CONVERTER = Path(__file__).with_name("jaxlib_converter.py")
_BYTECODE = b"ML\xefR"
_TIMEOUT = 60
_TIMEOUT_PER_BYTE = 10e-6
"""The timeout, many times what a conversion takes: on some damaged bytes jaxlib does not terminate."""

_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)
_NO_FORM = " that was explicitly marked illegal"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error message of a failed conversion, and its location in the program if known."""

    message: str
    where: Location | None = None


def text_of(data: bytes, name: str) -> str:
    """Return the text of a module in binary form, in MLIR's generic form and with locations.

    Args:
        data: MLIR bytecode, a portable artifact of StableHLO, or an artifact of `jax.export`.
        name: The file's name in diagnostics.

    Raises:
        DiagnosticError: If the data is damaged or of a version that jaxlib does not read.
    """
    converted = run_jaxlib(data, "read")
    try:
        if not isinstance(converted, Refusal):
            return converted.decode()
        problem = converted.message
    except UnicodeDecodeError as problem_of_text:
        problem = str(problem_of_text)
    kind = "MLIR bytecode" if data.startswith(_BYTECODE) else "an artifact of jax.export"
    raise error(Location(name, 1, 1), f"this looks like {kind} but cannot be read: {problem}")


def bytecode_of(text: str, target_version: str | None = None) -> bytes:
    """Return a module as MLIR bytecode, or as StableHLO's portable artifact of `target_version`.

    Raises:
        DiagnosticError: If jaxlib does not write that version, or the version lacks an operation of the module.
    """
    if target_version is not None:
        check_version(target_version)
    versions = () if target_version is None else (target_version,)
    converted = run_jaxlib(text.encode(), "write", *versions)
    if isinstance(converted, Refusal):
        kind = f"a portable artifact of StableHLO {target_version}" if versions else "bytecode"
        message = converted.message.partition(_NO_FORM)[0]
        raise error(converted.where, f"the program cannot be written as {kind}: {message}")
    return converted


def hlo_of(text: str, form: Literal["proto", "text"]) -> bytes:
    """Return the HLO of a module, as a serialized `HloModuleProto` or as text.

    Raises:
        DiagnosticError: If jaxlib cannot convert the module.
    """
    converted = run_jaxlib(text.encode(), "hlo", form)
    if isinstance(converted, Refusal):
        raise error(converted.where, f"the program cannot be written as HLO: {converted.message}")
    return converted


def check_known(module: Operation) -> None:
    """Raise DiagnosticError at an operation with a property that the installed jaxlib would silently drop."""
    unknown = installed_syntax().unknown_properties
    for op in operations(module):
        if op.name in unknown:
            name, usual = unknown[op.name]
            if op.properties.get(name, usual) != usual:
                raise op_error(
                    op, f"has '{name}', which the installed jaxlib does not know, so the program cannot be written"
                )


def check_version(target_version: str) -> None:
    """Raise DiagnosticError if `target_version` is not of the form `1.13.0`."""
    if not _VERSION.fullmatch(target_version):
        raise error(None, f"expected a version of StableHLO such as 1.13.0, got '{target_version}'")


def run_jaxlib(data: bytes, *arguments: str) -> bytes | Refusal:
    """Run `jaxlib_converter.py` with these arguments and `data` as its input."""
    # -P: the script's directory must not be on sys.path.
    command = [sys.executable, "-P", str(_CONVERTER), *arguments]
    timeout = _TIMEOUT + _TIMEOUT_PER_BYTE * len(data)
    try:
        process = subprocess.run(command, input=data, capture_output=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Refusal(f"jaxlib did not finish within {timeout:.0f} seconds")
    if process.returncode == 0:
        return process.stdout
    if process.returncode != REFUSED:
        return Refusal(f"jaxlib {_describe_exit(process.returncode)}")
    message, where = json.loads(process.stdout)
    place = _PLACE.search(where)
    return Refusal(message, Location(place[1], int(place[2]), int(place[3])) if place else None)


def _describe_exit(status: int) -> str:
    """Describe an unexpected exit status."""
    return f"was terminated by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
