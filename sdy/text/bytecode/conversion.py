"""Bytecode to text and back, and text to HLO, by a process that has jaxlib."""

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
from sdy.text.bytecode.by_jaxlib import REFUSED
from sdy.text.printing.versions import installed_forms

_PROGRAM = Path(__file__).with_name("by_jaxlib.py")
_BYTECODE = b"ML\xefR"
_SECONDS = 60
_SECONDS_PER_BYTE = 10e-6
"""The time in which it is to be done, many times what it takes: with some damaged bytes jaxlib never ends."""

_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)
_NO_FORM = " that was explicitly marked illegal"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why bytes are not converted, and the place of a program that this is about, if it is known."""

    message: str
    where: Location | None = None


def text_of(data: bytes, name: str) -> str:
    """The text, in the generic form and with locations, of the module that the bytes of the file `name` hold.

    They are MLIR bytecode, StableHLO's portable artifact of a version that jaxlib reads, or what `jax.export` saves.
    Raises DiagnosticError where they are damaged, or of a version that jaxlib does not know.
    """
    converted = asked(data, "read")
    try:
        if not isinstance(converted, Refusal):
            return converted.decode()
        problem = converted.message
    except UnicodeDecodeError as not_text:
        problem = str(not_text)
    what = "MLIR bytecode" if data.startswith(_BYTECODE) else "what jax.export saves"
    raise error(Location(name, 1, 1), f"this begins as {what} does, but cannot be read: {problem}")


def bytecode_of(text: str, target_version: str | None = None) -> bytes:
    """The bytecode of the module that `text` is, or StableHLO's portable artifact of it for this version.

    Raises DiagnosticError for what that version has no form for, and for a version that jaxlib does not write.
    """
    if target_version is not None:
        check_version(target_version)
    versions = () if target_version is None else (target_version,)
    converted = asked(text.encode(), "write", *versions)
    if isinstance(converted, Refusal):
        what = f"a portable artifact of StableHLO {target_version}" if versions else "bytecode"
        message = converted.message.partition(_NO_FORM)[0]
        raise error(converted.where, f"the program cannot be written as {what}: {message}")
    return converted


def hlo_of(text: str, form: Literal["proto", "text"]) -> bytes:
    """The HLO of the module that `text` is, as a serialized `HloModuleProto` or as text.

    Raises DiagnosticError where jaxlib makes none of it.
    """
    converted = asked(text.encode(), "hlo", form)
    if isinstance(converted, Refusal):
        raise error(converted.where, f"the program cannot be written as HLO: {converted.message}")
    return converted


def check_known(module: Operation) -> None:
    """Raise DiagnosticError at an operation with a property that the installed jaxlib would leave out in silence."""
    unknown = installed_forms().unknown_properties
    for op in operations(module):
        if op.name in unknown:
            name, usual = unknown[op.name]
            if op.properties.get(name, usual) != usual:
                raise op_error(op, f"has '{name}', which the installed jaxlib does not know, so it cannot be written")


def check_version(target_version: str) -> None:
    """Raise DiagnosticError for what is not a version of StableHLO at all."""
    if not _VERSION.fullmatch(target_version):
        raise error(None, f"a version of StableHLO is written as 1.13.0, not '{target_version}'")


def asked(data: bytes, *words: str) -> bytes | Refusal:
    """What the process makes of `data`."""
    # Its directory is not where it is to find modules.
    command = [sys.executable, "-P", str(_PROGRAM), *words]
    patience = _SECONDS + _SECONDS_PER_BYTE * len(data)
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return Refusal(f"jaxlib comes to no end with it within {patience:.0f} seconds")
    if done.returncode == 0:
        return done.stdout
    if done.returncode != REFUSED:
        return Refusal(f"jaxlib {_ended(done.returncode)}")
    message, where = json.loads(done.stdout)
    place = _PLACE.search(where)
    return Refusal(message, Location(place[1], int(place[2]), int(place[3])) if place else None)


def _ended(status: int) -> str:
    """How a process came to its end that was not meant to."""
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with the status {status}"
