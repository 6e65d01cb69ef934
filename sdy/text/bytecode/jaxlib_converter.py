"""The subprocess that converts standard input to standard output with jaxlib.

    python jaxlib_converter.py read            # MLIR bytecode or an artifact of jax.export to text (generic form)
    python jaxlib_converter.py write           # text to MLIR bytecode
    python jaxlib_converter.py write 1.13.0    # text to StableHLO's portable artifact of that version
    python jaxlib_converter.py hlo proto       # text to a serialized HloModuleProto
    python jaxlib_converter.py hlo text        # text to HLO text

If the conversion fails, the process exits with the status `REFUSED` and prints the message and its location as JSON.
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
"""The exit status of a conversion that failed with a message."""

_MEMORY_LIMIT = 8 << 30
_MEMORY_LIMIT_PER_BYTE = 64
"""The memory limit in bytes, plus that per byte of input: damaged input can request any amount."""

_BYTECODE = b"ML\xefR"
_PORTABLE = ("vhlo", "sdy", "chlo", "builtin")
"""The dialects allowed in a portable artifact: those that `jax.export` writes and XLA reads."""

_PARTITIONS = "mhlo.num_partitions"

_PORTABLE_HEADER = re.compile(rb"ML\xefR.StableHLO_v(\d+\.\d+\.\d+)", re.DOTALL)
"""The header of a portable artifact, with its version."""

_DAMAGED = "its bytes are damaged or truncated"

_REWORDED = (
    (r"unregistered operation ('[^']*')", "the installed jaxlib does not know the operation {}"),
    (r"unpack_from requires|bad number|index out of range|codec can't decode|InvalidSection", _DAMAGED),
    (r"No module named 'jaxlib\b", "this requires jaxlib, which is not installed: pip install 'sdy[jax]'"),
    (r"No module named 'flatbuffers'", "this requires the package flatbuffers, which is not installed"),
    (r"attempting to parse .*", f"{_DAMAGED}: {{}}"),
)
"""Replacements for common messages: a pattern, and the text to report; `{}` is the match or its group."""

_diagnostics: list[tuple[str, str]] = []
"""MLIR's diagnostics: message and location."""


def read(data: bytes) -> bytes:
    """Return the text of the module in bytecode, a portable artifact or an artifact of `jax.export`."""
    from jaxlib.mlir.dialects import stablehlo

    if not data.startswith(_BYTECODE):
        from jax import export

        data = export.deserialize(bytearray(data)).mlir_module_serialized
    try:
        module = stablehlo.deserialize_portable_artifact(_context(), data)  # reads plain MLIR bytecode too
    except Exception:
        _check_not_newer(data)
        raise
    return module.operation.get_asm(binary=True, enable_debug_info=True, print_generic_op_form=True)


def write(text: bytes, version: str | None = None) -> bytes:
    """Return a module as bytecode, or as a portable artifact of a version of StableHLO."""
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
        raise ValueError(f"the installed jaxlib writes versions {oldest} to {newest}")
    artifact = stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)
    _check_portable(ir.Module.parse(artifact, context))
    return artifact


def hlo(text: bytes, form: str) -> bytes:
    """Return a module as HLO, as a "proto" or as "text"."""
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
    """Raise ValueError for a portable artifact of a newer version than jaxlib's."""
    from jaxlib.mlir.dialects import stablehlo

    newest = stablehlo.get_current_version()
    header = _PORTABLE_HEADER.match(data)
    if header and _numbers(version := header[1].decode()) > _numbers(newest):
        _diagnostics.clear()
        raise ValueError(f"it requires StableHLO {version}, but the installed jaxlib supports up to {newest}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _check_portable(module: ir.Module) -> None:
    """Raise ValueError if an operation has no portable form, so that other versions may not read it."""
    from jaxlib.mlir import ir

    def check(op: ir.Operation) -> ir.WalkResult:
        if op.name.partition(".")[0] not in _PORTABLE:
            _diagnostics.append((f"'{op.name}' has no portable form", str(op.location)))
        return ir.WalkResult.ADVANCE

    module.operation.walk(check)
    if _diagnostics:
        raise ValueError


def _context() -> ir.Context:
    """Return a context with all dialects of jaxlib that allows unregistered ones."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext, _mlirHlo
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

    def collect(diagnostic: ir.Diagnostic) -> bool:
        _diagnostics.append((diagnostic.message, str(diagnostic.location)))
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
    context.attach_diagnostic_handler(collect)
    # Deserializing an artifact loads the quant dialect; nothing else exposed by jaxlib does.
    empty = ir.Module.parse("module {}", context)
    artifact = stablehlo.serialize_portable_artifact(empty, stablehlo.get_minimum_version())
    stablehlo.deserialize_portable_artifact(context, artifact)
    return context


_COMMANDS: dict[str, Callable[..., bytes]] = {"read": read, "write": write, "hlo": hlo}


def run_command(command: str, options: Sequence[str], data: bytes) -> tuple[int, bytes]:
    """Return the exit status and the bytes for standard output."""
    try:
        return 0, _COMMANDS[command](data, *options)
    except Exception as problem:
        message, where = _diagnostics[0] if _diagnostics else (_message(problem), "")
        return REFUSED, json.dumps([_reworded(message), where]).encode()


def _reworded(message: str) -> str:
    for pattern, words in _REWORDED:
        if match := re.search(pattern, message):
            return words.format(match[match.lastindex or 0])
    return message


def _message(problem: Exception) -> str:
    """Return an exception's message, without a location: it would refer to text that the user never sees."""
    diagnostics = getattr(problem, "error_diagnostics", ())
    if diagnostics:
        return f"the installed jaxlib cannot parse the program: {diagnostics[0].message}"
    return str(problem) if isinstance(problem, ValueError) else f"{type(problem).__name__}: {problem}"


def _main(command: str, *options: str) -> None:
    data = sys.stdin.buffer.read()
    _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _MEMORY_LIMIT + _MEMORY_LIMIT_PER_BYTE * len(data)
    resource.setrlimit(
        resource.RLIMIT_DATA, (limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit), hard_limit)
    )
    status, written = run_command(command, options, data)
    sys.stdout.buffer.write(written)
    sys.stdout.buffer.flush()
    os._exit(status)  # skips freeing the module, which is slow


if __name__ == "__main__":
    _main(*sys.argv[1:])
