"""The program of a process that has jaxlib: standard input converted to standard output.

    python by_jaxlib.py read            # of MLIR bytecode, or of what jax.export saves: text, in the generic form
    python by_jaxlib.py write           # of text: MLIR bytecode
    python by_jaxlib.py write 1.13.0    # of text: StableHLO's portable artifact of that version
    python by_jaxlib.py hlo proto       # of text: a serialized HloModuleProto
    python by_jaxlib.py hlo text        # of text: HLO as text

Where that cannot be done it exits with `REFUSED`, and standard output has as JSON what is wrong, and where.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxlib.mlir import ir

REFUSED = 3
"""The exit status."""

_ROOM = 8 << 30
_ROOM_PER_BYTE = 64
"""The memory that it may take, in bytes: damaged bytes can ask for any."""

_BYTECODE = b"ML\xefR"
_PORTABLE = ("vhlo", "sdy", "chlo", "builtin")
"""The dialects of what a portable artifact holds: those that `jax.export` puts there, and XLA reads."""

_PARTITIONS = "mhlo.num_partitions"

_WRITTEN_BY = re.compile(rb"ML\xefR.StableHLO_v(\d+\.\d+\.\d+)", re.DOTALL)
"""How a portable artifact of a version begins."""

_DAMAGED = "its bytes are damaged or cut off"

_PLAINER = (
    (r"unregistered operation ('[^']*')", "the installed jaxlib does not know the operation {}"),
    (r"unpack_from requires|bad number|index out of range|codec can't decode|InvalidSection", _DAMAGED),
    (r"No module named 'jaxlib\b", "that takes jaxlib, which is not installed: pip install 'sdy[jax]'"),
    (r"No module named 'flatbuffers'", "that takes the package flatbuffers, which is not installed"),
    (r"attempting to parse .*", f"{_DAMAGED}: {{}}"),
)
"""What is often said, as a pattern, and how that is told; `{}` is what the pattern found, or its group."""

_told: list[tuple[str, str]] = []
"""What MLIR has said, each with where that is."""


def read(data: bytes) -> bytes:
    """The text of a module."""
    from jaxlib.mlir.dialects import stablehlo

    if not data.startswith(_BYTECODE):
        from jax import export

        data = export.deserialize(bytearray(data)).mlir_module_serialized
    try:
        module = stablehlo.deserialize_portable_artifact(_context(), data)  # MLIR's own bytecode stays as it is
    except Exception:
        _check_not_newer(data)
        raise
    return module.operation.get_asm(binary=True, enable_debug_info=True, print_generic_op_form=True)


def write(text: bytes, version: str | None = None) -> bytes:
    """The bytecode of a module, or its portable artifact for a version of StableHLO."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = _context()
    module = ir.Module.parse(text, context)
    if version is None:
        written = BytesIO()
        module.operation.write_bytecode(written)
        return written.getvalue()
    oldest, newest = stablehlo.get_minimum_version(), stablehlo.get_current_version()
    if not _numbers(oldest) <= _numbers(version) <= _numbers(newest):
        raise ValueError(f"this jaxlib writes the versions {oldest} to {newest}")
    artifact = stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)
    _check_portable(ir.Module.parse(artifact, context))
    return artifact


def hlo(text: bytes, form: str) -> bytes:
    """The HLO of a module."""
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir

    context = _context()
    attributes = ir.Module.parse(text, context).operation.attributes
    computation = _jax.mlir.mlir_module_to_xla_computation(text.decode(), use_tuple_args=False, return_tuple=False)
    if form == "proto":
        return computation.as_serialized_hlo_module_proto()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    head, _, rest = computation.get_hlo_module().to_string(options).partition("\n")
    if _PARTITIONS in attributes:
        count, _, _ = str(attributes[_PARTITIONS]).partition(" ")
        head += f", num_partitions={count}"
    return f"{head}\n{rest}".encode()


def _check_not_newer(data: bytes) -> None:
    """Raise ValueError for a portable artifact of a version that was not there yet."""
    from jaxlib.mlir.dialects import stablehlo

    newest = stablehlo.get_current_version()
    begins = _WRITTEN_BY.match(data)
    if begins and _numbers(version := begins[1].decode()) > _numbers(newest):
        _told.clear()
        raise ValueError(f"it is of StableHLO {version}, and this jaxlib reads versions up to {newest}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _check_portable(module: ir.Module) -> None:
    """Raise ValueError where an operation is left as it was, which other versions need not know."""
    from jaxlib.mlir import ir

    def check(op: ir.Operation) -> ir.WalkResult:
        if op.name.partition(".")[0] not in _PORTABLE:
            _told.append((f"there is no form for '{op.name}'", str(op.location)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(check)
    if _told:
        raise ValueError


def _context() -> ir.Context:
    """One that knows all dialects of jaxlib, and does not mind others."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _mlirHlo
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    def tell(diagnostic: ir.Diagnostic) -> bool:
        _told.append((diagnostic.message, str(diagnostic.location)))
        return True

    context = ir.Context()
    context.enable_multithreading(False)
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    context.attach_diagnostic_handler(tell)
    # To read an artifact brings in the dialect of quantized types, which nothing else here does.
    empty = ir.Module.parse("module {}", context)
    artifact = stablehlo.serialize_portable_artifact(empty, stablehlo.get_minimum_version())
    stablehlo.deserialize_portable_artifact(context, artifact)
    return context


_ANSWERS: dict[str, Callable[..., bytes]] = {"read": read, "write": write, "hlo": hlo}


def answer(what: str, options: Sequence[str], data: bytes) -> tuple[int, bytes]:
    """The exit status and what is written to standard output."""
    try:
        return 0, _ANSWERS[what](data, *options)
    except Exception as problem:
        message, where = _told[0] if _told else (_words(problem), "")
        return REFUSED, json.dumps([_plainer(message), where]).encode()


def _plainer(message: str) -> str:
    for pattern, words in _PLAINER:
        if found := re.search(pattern, message):
            return words.format(found[found.lastindex or 0])
    return message


def _words(problem: Exception) -> str:
    """What it says; of a text that jaxlib does not read, without where, as no one sees that text."""
    told = getattr(problem, "error_diagnostics", ())
    if told:
        return f"the installed jaxlib does not read all of it: {told[0].message}"
    return str(problem) if isinstance(problem, ValueError) else f"{type(problem).__name__}: {problem}"


def _main(what: str, *options: str) -> None:
    data = sys.stdin.buffer.read()
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    room = _ROOM + _ROOM_PER_BYTE * len(data)
    resource.setrlimit(resource.RLIMIT_DATA, (room if most == resource.RLIM_INFINITY else min(room, most), most))
    status, written = answer(what, options, data)
    sys.stdout.buffer.write(written)
    sys.stdout.buffer.flush()
    os._exit(status)  # nothing is left to do, and to free a module takes a while


if __name__ == "__main__":
    _main(*sys.argv[1:])
