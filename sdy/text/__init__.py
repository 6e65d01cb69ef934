"""MLIR text in and out.

`parse` and `format` are MLIR's own parser and printer as far as a reader can tell: what they accept, where they say an
error is, and each byte they print.

bytecode/          MLIR bytecode in and out, and HLO out, by jaxlib
reading/           parser.py reads operations and regions; with values.py for the scopes of names, generic_form.py for
                   operations that nest none, memory.py for what was read before, other_formats.py for what is no MLIR
  tokens           lexer.py finds them, tokens.py takes them one by one, wording.py says what is missing
  attributes       dialect_symbols.py, dictionaries.py, numbers.py; dense.py and sparse_elements.py for constants,
                   affine_parser.py for maps, builtin_syntax.py for resources and what types leave unsaid,
                   locations.py for where operations stand
  types            builtin_types.py
printing/          the same way back: printer.py for operations, assembly_formats.py for modules and functions,
                   names.py for how values are called; attribute_printer.py for attributes and types, aliases.py for
                   their short names, location_text.py and floats.py for what they contain; versions.py for what each
                   version of jaxlib prints in its own way
verification/      verifier.py; with visibility.py for the uses of values, definition_checks.py and constraint_words.py
                   for what definitions ask, builtin_checks.py for modules, functions and calls

dialects.py        the dialects that programs are written in
lines.py           in which line and column a text is
affine.py          affine expressions; encoding.py what a tensor's encoding has to say
large_stack.py     a stack that is large enough for what nests deeply
"""

import math

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy import gc_control
from sdy.text.dialects import context
from sdy.text.large_stack import again_on_large_stack
from sdy.text.printing.names import AsmNames
from sdy.text.printing.printer import Printer
from sdy.text.reading.other_formats import decoded
from sdy.text.reading.parser import Parser, parse_module, parse_valid_module
from sdy.text.verification.verifier import verify

__all__ = ["AsmNames", "Parser", "Printer", "context", "format", "parse", "parse_verified", "to_bytecode", "verify"]


def parse(text: str | bytes, filename: str = "<stdin>", ctx: Context | None = None) -> ModuleOp:
    """The verified module that `text` is, or one around the operations that it is.

    Bytes are those of a file: of text, or of MLIR bytecode, a portable artifact of StableHLO or what `jax.export`
    saves, which jaxlib reads in a process of its own. `filename` is how diagnostics call the text. Raises
    DiagnosticError where the text is not MLIR, uses what `ctx` does not know, or makes a module that is not valid.
    """
    if isinstance(text, bytes):
        text = decoded(text, filename)
    gc_control.collect_if_grown()
    with gc_control.paused():
        return parse_valid_module(text, filename, ctx or context())


def parse_verified(text: str, filename: str) -> ModuleOp:
    """As `parse`, of a text that MLIR has printed of a module that it has verified: it is not verified again."""
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
    """The text of `op` as MLIR prints it, a newline at the end.

    `generic` prints no operation in its own form; `debuginfo` prints locations; `local_scope` prints everything where
    it stands, without aliases; constants of more than `most_elements` different elements are left out, so that the
    text is for reading only. `for_jaxlib`, as `"0.11"`, prints what the MLIR of that version of jaxlib prints and
    reads, by default the installed one. Raises ValueError for a version whose syntax is not known.
    """
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
    """`module` as MLIR bytecode, which the installed jaxlib and newer ones read, with its locations.

    For `target_version`, as `"1.13.0"`, it is StableHLO's portable artifact of that version, which any later StableHLO
    reads too. Operations of SDY and CHLO, and shardings, are part of that as they are, as with `jax.export`. Raises
    DiagnosticError where the program has what that version does not know, and where jaxlib does not write it.
    """
    from sdy.text.bytecode.conversion import bytecode_of, check_known

    check_known(module)
    return bytecode_of(format(module, generic=True, debuginfo=True), target_version)
