"""MLIR text in and out.

`parse` and `format` are MLIR's own parser and printer as far as a reader can tell: what they accept, where they say an
error is, and each byte they print.

dialects.py        the dialects that programs are written in
lexer.py           tokens; tokens.py takes them one by one, lines.py knows where they stand
parser.py          operations and regions; with values.py for the scopes of names, dense.py for constants, locations.py
                   for `loc(...)`, generic_form.py for operations that nest none, memory.py for what was read before
printer.py         the same way back; with floats.py for numbers, aliases.py for the short names of locations
names.py           how values are called, and how an operation says what its results should be called
spelling.py        the form of modules and functions
verifier.py        whether what was read is a valid program; builtin_checks.py for modules, functions and calls
"""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sdy.text.aliases import LocationAliases
from sdy.text.dialects import context
from sdy.text.names import AsmNames
from sdy.text.parser import Parser, parse_module
from sdy.text.printer import Printer
from sdy.text.verifier import verify

__all__ = ["AsmNames", "Parser", "Printer", "context", "format", "parse", "verify"]


def parse(text: str, filename: str = "<stdin>", ctx: Context | None = None) -> ModuleOp:
    """The verified module that `text` is, or one around the operations that it is.

    `filename` is how diagnostics call the text. Raises DiagnosticError where the text is not MLIR, uses what `ctx`
    does not know, or makes a module that is not valid.
    """
    module = parse_module(text, filename, ctx or context())
    verify(module)
    return module


def format(op: Operation, *, generic: bool = False, debuginfo: bool = False) -> str:  # noqa: A001
    """The text of `op` as MLIR prints it, a newline at the end.

    `generic` prints no operation in its own form; `debuginfo` prints locations.
    """
    locations = LocationAliases() if debuginfo else None
    if locations is not None:
        # A location's number is known when all have been met: the first printing is a rehearsal.
        Printer(generic=generic, locations=locations).print_op(op)
        locations.number()
    printer = Printer(generic=generic, locations=locations)
    printer.print_op(op)
    return printer.text()
