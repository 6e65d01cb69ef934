"""sdy-opt: run passes on MLIR, as text or bytecode, with the command line of `mlir-opt`.

Rarely used features are imported lazily, since start-up is most of the time of a short run.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sdy.diagnostics import DiagnosticError, capture, error, report
from sdy.formatting import escape_lines
from sdy.passes.catalog import PASSES, summary
from sdy.passes.driver import (
    SEPARATOR,
    STANDARD_STREAM,
    Observer,
    Source,
    Timing,
    check_writable,
    read,
    run_passes,
    split,
    write,
)
from sdy.passes.options import BOOLEANS, create_pass, nearest
from sdy.text import context, format, parse, to_bytecode, verify
from sdy.tools.entry import REFUSED, guarded
from sdy.tools.progress import progress

USAGE = """\
usage: sdy-opt [FILE] [PASS ...] [OPTION ...]

Read MLIR from FILE (standard input for - or no file), run the passes in the order given, and print the module. FILE is
text, MLIR bytecode, a StableHLO portable artifact, or a file written by jax.export.

options:
  -o FILE, --output=FILE         write to FILE instead of standard output
  --pass-pipeline=TEXT           run 'builtin.module(PASS{OPTION=VALUE ...},...)'
  --custom-call-rules=FILE       read sharding rules of custom calls from FILE, one `target: operands -> results` per
                                 line
  --import=MODULE                import this module or .py file first, for example to register operators
  --split-input-file             treat each part between '// -----' lines as a file of its own
  --verify-diagnostics           check the diagnostics against comments such as 'expected-error'
  --allow-unregistered-dialect   accept operations of unknown dialects
  --mlir-print-ir-before-all     print the module to standard error before each pass
  --mlir-print-ir-after-all      print the module to standard error after each pass
  --mlir-print-op-generic        print operations in their generic form
  --mlir-print-debuginfo         print the location of each operation
  --mlir-print-local-scope       print attributes and locations inline, without aliases
  --mlir-elide-elementsattrs-if-larger=N
                                 omit the elements of constants with more than N elements
  --for-jaxlib=VERSION           print the MLIR syntax of this version of jaxlib, such as 0.11, not the installed one
  --emit-bytecode                write MLIR bytecode instead of text
  --target-version=X.Y.Z         write a portable artifact for this and later versions of StableHLO
  --emit-hlo                     write HLO text; the program must have no SDY operations, as after --sdy-plain
  --emit-hlo-proto               write the same as a serialized HloModuleProto
  --emit-python                  write a Python file that imports JAX alone: the program of one device under
                                 jax.shard_map if the module is partitioned, else the program of whole arrays
  --sdy-explain=NAME             print why the value %NAME has its sharding, instead of the module;
                                 @FUNCTION:%NAME for a value outside of the main function, and FILE:LINE for the
                                 tensors of a source line
  --sdy-model-explorer           print the graph of the module and the propagation of each axis, as JSON for Google's
                                 Model Explorer, instead of the module
  --mlir-timing                  print the time of each pass to standard error
  --verify-each                  verify after each pass, not only after parsing and at the end
  --                             the next argument is a file, even if it begins with a dash
  --help                         print this help
  --version                      print the version, and those of jax, jaxlib and xdsl

exit status: 0 success; 1 --verify-diagnostics finds a mismatch; 2 invalid flag, file or program

passes, each a flag (--PASS='OPTION=VALUE ...' sets options):
"""


@dataclass
class Arguments:
    """Parsed command line."""

    file: str = STANDARD_STREAM
    output: str = STANDARD_STREAM
    custom_call_rules: str | None = None
    imports: list[str] = field(default_factory=list[str])
    passes: list[ModulePass] = field(default_factory=list[ModulePass])
    split_input_file: bool = False
    verify_diagnostics: bool = False
    allow_unregistered_dialect: bool = False
    mlir_print_ir_before_all: bool = False
    mlir_print_ir_after_all: bool = False
    mlir_print_op_generic: bool = False
    mlir_print_debuginfo: bool = False
    mlir_print_local_scope: bool = False
    mlir_elide_elementsattrs_if_larger: float = math.inf
    for_jaxlib: str | None = None
    emit_bytecode: bool = False
    target_version: str | None = None
    emit_hlo: bool = False
    emit_hlo_proto: bool = False
    emit_python: bool = False
    sdy_explain: str = ""
    sdy_model_explorer: bool = False
    mlir_timing: bool = False
    verify_each: bool = False

    @property
    def other_forms(self) -> set[str]:
        """The requested output formats other than MLIR text."""
        requested = {
            "bytecode": self.emit_bytecode or self.target_version is not None,
            "HLO as text": self.emit_hlo,
            "HLO as a proto": self.emit_hlo_proto,
            "Python": self.emit_python,
        }
        return {form for form, is_requested in requested.items() if is_requested}

    def text(self, module: ModuleOp) -> str:
        """Format `module` with the requested printing options."""
        return format(
            module,
            generic=self.mlir_print_op_generic,
            debuginfo=self.mlir_print_debuginfo,
            local_scope=self.mlir_print_local_scope,
            most_elements=self.mlir_elide_elementsattrs_if_larger,
            for_jaxlib=self.for_jaxlib,
        )

    def dump(self, when: str) -> Observer:
        """Return an observer that prints the module to standard error before or after a pass."""

        def print_module(step: ModulePass, module: ModuleOp) -> None:
            print(f"// -----// IR Dump {when} {type(step).__name__} ({step.name}) //----- //", file=sys.stderr)
            print(self.text(module), file=sys.stderr)

        return print_module


_CUSTOM_CALL_RULES = "custom-call-rules"
_IMPORT = "import"
_ELIDE = "mlir-elide-elementsattrs-if-larger"
_EXPLAIN = "sdy-explain"
_FOR_JAXLIB = "for-jaxlib"
_TARGET = "target-version"
_VALUED = ("o", "output", "pass-pipeline", _CUSTOM_CALL_RULES, _IMPORT, _ELIDE, _EXPLAIN, _FOR_JAXLIB, _TARGET)
_TEXT_ONLY = (
    "split_input_file",
    "mlir_print_op_generic",
    "mlir_elide_elementsattrs_if_larger",
    "mlir_print_local_scope",
    "for_jaxlib",
    _EXPLAIN.replace("-", "_"),
    "sdy_model_explorer",
)
"""Arguments that apply only to text output."""
_SWITCHES = {option.name.replace("_", "-"): option.name for option in fields(Arguments) if option.type is bool}


def parse_arguments(words: Sequence[str]) -> Arguments:
    """Parse the command line; flags have one dash or two.

    Raises:
        DiagnosticError: An argument is invalid.
    """
    arguments = Arguments()
    files: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            files += rest
            break
        if not word.startswith("-") or word == STANDARD_STREAM:
            files.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if name in _VALUED and not equals:
            if not rest:
                raise error(None, f"'{word}' requires a value")
            value = rest.pop(0)
        if name in ("o", "output"):
            arguments.output = value
        elif name == _CUSTOM_CALL_RULES:
            arguments.custom_call_rules = value
        elif name == _IMPORT:
            arguments.imports.append(value)
        elif name == "pass-pipeline":
            from sdy.passes.spec import parse_pipeline

            arguments.passes += parse_pipeline(value)
        elif name == _EXPLAIN:
            arguments.sdy_explain = value
        elif name == _ELIDE:
            if not value.isdecimal():
                raise error(None, f"'{_ELIDE}' must be a number of elements, not '{value}'")
            arguments.mlir_elide_elementsattrs_if_larger = int(value)
        elif name == _FOR_JAXLIB:
            arguments.for_jaxlib = _known_jaxlib(value)
        elif name == _TARGET:
            arguments.target_version = _written_version(value)
        elif name in _SWITCHES:
            if value and value not in BOOLEANS:
                raise error(None, f"'{word.partition('=')[0]}' must be true or false, not '{value}'")
            setattr(arguments, _SWITCHES[name], BOOLEANS.get(value, True))
        elif name in PASSES:
            arguments.passes.append(_pass(name, value))
        else:
            raise _unknown_flag(word.partition("=")[0], name)
    if len(files) > 1:
        raise error(None, f"more than one input file: {', '.join(files)}")
    arguments.file = files[0] if files else STANDARD_STREAM
    if arguments.other_forms:
        _check_output_format(arguments)
    return arguments


def _pass(name: str, options: str) -> ModulePass:
    if not options:
        return create_pass(name, {})
    from sdy.passes.spec import parse_pass

    return parse_pass(name, options)


def _known_jaxlib(version: str) -> str:
    from sdy.text.printing.versions import syntax_of

    try:
        syntax_of(version)
    except ValueError as unknown:
        raise error(None, str(unknown)) from None
    return version


def _written_version(version: str) -> str:
    from sdy.text.bytecode import check_version

    check_version(version)
    return version


def _check_output_format(arguments: Arguments) -> None:
    """Raise DiagnosticError for several output formats, or for an argument that applies only to text."""
    defaults = Arguments()
    form, *others = sorted(arguments.other_forms)
    if others:
        raise error(None, f"conflicting output formats: {' and '.join([form, *others])}")
    for name in _TEXT_ONLY:
        if getattr(arguments, name) != getattr(defaults, name):
            raise error(None, f"'--{name.replace('_', '-')}' applies to MLIR text, but the output is {form}")


def _unknown_flag(word: str, name: str) -> DiagnosticError:
    suggestion = nearest(name, [*_SWITCHES, *PASSES, *_VALUED, "help", "version"])
    hint = f": did you mean '--{suggestion}'?" if suggestion else ""
    return error(None, f"unknown flag '{word}'{hint} (--help lists all flags)")


def usage() -> str:
    """Return the text of --help: the options, then each pass with its summary."""
    width = max(map(len, PASSES)) + 2
    return USAGE + "".join(f"  --{name:{width}} {summary(load())}\n" for name, load in sorted(PASSES.items()))


def process(source: Source, arguments: Arguments, timing: Timing) -> str | bytes:
    """Run the passes on `source` and return the output.

    Raises:
        DiagnosticError: The input is invalid, or a pass fails.
    """
    ctx = context(allow_unregistered=arguments.allow_unregistered_dialect)
    with timing.stage("parsing"):
        module = parse(source.text, source.name, ctx)
    run_passes(
        module,
        arguments.passes,
        ctx=ctx,
        verify_each=arguments.verify_each,
        before_each=arguments.dump("Before") if arguments.mlir_print_ir_before_all else None,
        after_each=arguments.dump("After") if arguments.mlir_print_ir_after_all else None,
        timing=timing,
    )
    if arguments.passes and not arguments.verify_each:
        with timing.stage("verification"):
            verify(module)
    with timing.stage("printing"):
        if arguments.sdy_explain:
            from sdy.passes.propagation.provenance.explain import explain

            # A number is the name of a value here, not a line.
            name = arguments.sdy_explain
            return f"{explain(module, f'%{name}' if name.isdecimal() else name)}\n"
        if arguments.sdy_model_explorer:
            import json

            from sdy.passes.account.model_explorer import to_model_explorer

            return json.dumps(to_model_explorer(module), indent=1) + "\n"
        if arguments.emit_hlo or arguments.emit_hlo_proto:
            from sdy.passes.exporting.hlo import to_hlo_proto, to_hlo_text

            return (to_hlo_text if arguments.emit_hlo else to_hlo_proto)(module)
        if arguments.emit_python:
            from sdy.passes.python.program import to_python

            return to_python(module)
        if arguments.other_forms:
            return to_bytecode(module, arguments.target_version)
        return arguments.text(module)


def attempt(source: Source, arguments: Arguments, timing: Timing) -> str | bytes | None:
    """Run the passes on `source` and return the output, or report the diagnostics and return None."""
    if not arguments.verify_diagnostics:
        try:
            return process(source, arguments, timing)
        except DiagnosticError as problem:
            for diagnostic in problem.diagnostics:
                report(diagnostic)
            return None
    from sdy.tools.expected_diagnostics import mismatches

    text: str | bytes = ""
    with capture() as diagnostics:
        try:
            text = process(source, arguments, timing)
        except DiagnosticError as problem:
            for diagnostic in problem.diagnostics:
                report(diagnostic)
    wrong = list(mismatches(source, diagnostics))
    for diagnostic in wrong:
        report(diagnostic)
    return None if wrong else text


def run(arguments: Arguments) -> int:
    """Execute the command line and return the exit status; nothing is written unless all inputs succeed."""
    if arguments.imports:
        from sdy.tools.extensions import import_modules

        import_modules(arguments.imports)
    if arguments.custom_call_rules is not None:
        from sdy.tools.extensions import take_rules

        take_rules(arguments.custom_call_rules)
    check_writable(arguments.output)
    source = read(arguments.file)
    parts = split(source) if arguments.split_input_file else [source]
    timing = Timing()
    with progress():
        attempts = [attempt(part, arguments, timing) for part in parts]
    if arguments.mlir_timing:
        print(timing.table(), file=sys.stderr)
    outputs = [output for output in attempts if output is not None]
    if len(outputs) < len(parts):
        return 1 if arguments.verify_diagnostics else REFUSED
    with timing.stage("writing"):
        texts = (output for output in outputs if isinstance(output, str))
        write(arguments.output, SEPARATOR.join(texts) if arguments.split_input_file else outputs[0])
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line `words`, by default the process's own, and return the exit status."""
    words = sys.argv[1:] if words is None else words
    if any(word in ("-h", "-help", "--help") for word in words):
        print(usage(), end="")
        return 0
    if any(word in ("-version", "--version") for word in words):
        from sdy.tools.arguments import version_line

        print(version_line("sdy-opt"))
        return 0
    try:
        arguments = parse_arguments(words)
    except DiagnosticError as problem:
        print(f"sdy-opt: {escape_lines(problem.message)}", file=sys.stderr)
        return REFUSED
    return guarded(lambda: run(arguments))


if __name__ == "__main__":
    sys.exit(main())
