"""The option --import: Python modules that register operators, rules or plugins, in all tools that read programs."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from sdy.diagnostics import Location, error

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

NAME = "import"
HELP = "import this module or .py file first, for example to register operators; repeatable"


def add_import_option(parser: "ArgumentParser") -> None:
    """Add the option to a parser; `import_modules` imports its modules."""
    parser.add_argument(f"--{NAME}", metavar="MODULE", dest="imports", action="append", default=[], help=HELP)


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
