"""The options --import and --custom-call-rules, in all tools that read programs.

`--import` names Python modules, which may register operators, rules or plugins; `--custom-call-rules` a file of
sharding rules of custom calls.
"""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from sdy.diagnostics import Location, error
from sdy.passes.driver import read

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable


_IMPORT_HELP = "import this module or .py file first, for example to register operators; repeatable"
_RULES_HELP = "read sharding rules of custom calls from this file, one `target: operands -> results` per line"


def add_import_option(parser: "ArgumentParser") -> None:
    """Add the option to a parser; `import_modules` imports its modules."""
    parser.add_argument("--import", metavar="MODULE", dest="imports", action="append", default=[], help=_IMPORT_HELP)


def import_modules(names: "Iterable[str]") -> None:
    """Import modules, also from the working directory.

    Raises:
        DiagnosticError: A module cannot be found, or its import raises an exception.
    """
    for name in names:
        try:
            _import_file(Path(name)) if name.endswith(".py") else _import_name(name)
        except Exception as problem:  # user code can raise anything
            kind = type(problem).__name__
            raise error(Location(name, 0, 0), f"cannot import '{name}': {kind}: {problem}") from problem


def _import_name(name: str) -> None:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    import_module(name)


def _import_file(path: Path) -> None:
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise FileNotFoundError(f"no file {path}")
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)


def add_rules_option(parser: "ArgumentParser") -> None:
    """Add the option to a parser; `take_rules` reads its file."""
    parser.add_argument("--custom-call-rules", metavar="FILE", help=_RULES_HELP)


def take_rules(path: str | None) -> None:
    """Register the rules in a file, if one is given, for the rest of the process.

    Raises:
        DiagnosticError: The file cannot be read, or has an invalid rule.
    """
    if path is not None:
        from sdy.rules.annotated_operations import annotate_from  # imported lazily: few command lines have the option

        source = read(path)
        annotate_from(source.text, source.name)
