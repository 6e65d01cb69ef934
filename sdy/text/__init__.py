"""The parser, printer and verifier of MLIR text.

`parse` and `format` behave as MLIR's own: they accept the same programs, report errors at the same places and print
the same bytes.

bytecode/          MLIR bytecode and HLO, by jaxlib in a subprocess
reading/           the parser: parser.py for operations and regions, values.py for the scopes of value names,
                   generic_form.py for the generic form, attribute_cache.py and line_cache.py, other_formats.py
                   for input that is not MLIR text
  tokens           lexer.py, tokens.py for the primitives of the parser and its errors
  attributes       dialect_symbols.py, dictionaries.py, numbers.py; dense.py and sparse_elements.py for constants,
                   affine_parser.py for maps and sets, builtin_syntax.py for resources and defaults of builtin types,
                   locations.py
  types            builtin_types.py
printing/          the printer; assembly_formats.py for modules and functions, names.py for
                   the names of values; attribute_printer.py for attributes and types, aliases.py, location_text.py,
                   floats.py; text_cache.py; versions.py for the differences between versions of jaxlib
verification/      the verifier; visibility.py for dominance, definition_checks.py and constraint_words.py for IRDL
                   definitions, builtin_checks.py for modules, functions and calls, memoized_checks.py

dialects.py        the registered dialects
lines.py           lines and columns of offsets
affine.py          affine expressions
large_stack.py     recursion beyond Python's limit
"""

import math

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy import gc_control
from sdy.text.dialects import context
from sdy.text.large_stack import again_on_large_stack
from sdy.text.printing import Printer
from sdy.text.printing.names import AsmNames
from sdy.text.reading.other_formats import decode_program
from sdy.text.reading.parser import Parser, parse_module, parse_valid_module
from sdy.text.verification import verify

__all__ = ["AsmNames", "Parser", "Printer", "context", "format", "parse", "parse_verified", "to_bytecode", "verify"]


def parse(text: str | bytes, filename: str = "<stdin>", ctx: Context | None = None) -> ModuleOp:
    """Parse and verify a module.

    Args:
        text: MLIR text, or the bytes of a file: text, MLIR bytecode, a portable artifact of StableHLO or an artifact of
            `jax.export`. jaxlib converts the binary forms, in a subprocess.
        filename: The name of the text in diagnostics.
        ctx: The registered dialects, by default those of `context()`.

    Returns:
        The module, or an implicit one around the operations of a text without a module.

    Raises:
        DiagnosticError: If the text is not MLIR, uses an unregistered dialect, or its module is invalid.
        TypeError: If `text` is neither text nor bytes.
    """
    if isinstance(text, bytes):
        text = decode_program(text, filename)
    _check_type(text, str, "MLIR text")
    gc_control.collect_if_grown()
    with gc_control.paused():
        return parse_valid_module(text, filename, ctx or context())


def _check_type(value: object, type_: type, expected: str) -> None:
    if not isinstance(value, type_):
        raise TypeError(f"expected {expected}, not {type(value).__name__}; sdy.from_jax converts a JAX program")


def parse_verified(text: str, filename: str) -> ModuleOp:
    """Parse text that MLIR printed from a verified module, without verifying it again."""
    gc_control.collect_if_grown()
    with gc_control.paused():
        return parse_module(text, filename, context())


@gc_control.paused()
@again_on_large_stack
def format(  # noqa: A001
    op: Operation,
    *,
    generic: bool = False,
    debuginfo: bool = False,
    local_scope: bool = False,
    most_elements: float = math.inf,
    for_jaxlib: str | None = None,
) -> str:
    """Return the text of an operation as MLIR prints it, with a newline at the end.

    Args:
        op: The operation, for example a module.
        generic: Whether all operations are printed in the generic form.
        debuginfo: Whether locations are printed.
        local_scope: Whether attributes, types and locations are printed inline, without aliases.
        most_elements: Elide non-splat constants with more elements; such text cannot be parsed again.
        for_jaxlib: The version of jaxlib, as `"0.11"`, whose syntax is printed; by default the installed one.

    Raises:
        TypeError: If `op` is not an operation.
        ValueError: If the syntax of that version is unknown.
    """
    _check_type(op, Operation, "an operation")
    printer = Printer(
        generic=generic,
        debuginfo=debuginfo,
        most_elements=most_elements,
        with_aliases=not local_scope,
        for_jaxlib=for_jaxlib,
    )
    printer.print_op(op)
    return printer.text()


def to_bytecode(module: ModuleOp, target_version: str | None = None) -> bytes:
    """Serialize a module to MLIR bytecode, with its locations.

    Args:
        module: The module.
        target_version: A version of StableHLO, as `"1.13.0"`. The result is then StableHLO's portable artifact of that
            version, which any later StableHLO reads; SDY and CHLO operations and shardings are kept in it, as with
            `jax.export`. By default the result is bytecode for the installed and newer versions of jaxlib.

    Raises:
        DiagnosticError: If the version lacks an operation of the module, or jaxlib does not write that version.
    """
    from sdy.text.bytecode import bytecode_of, check_known

    check_known(module)
    return bytecode_of(format(module, generic=True, debuginfo=True), target_version)
