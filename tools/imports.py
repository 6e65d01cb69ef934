"""--import: Python modules that register operators, rules or plugins, for all tools that read programs."""

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
HELP = "import this module first, or this .py file, as one that registers operators; may be given several times"


def add_import_option(parser: "ArgumentParser") -> None:
    """Let a command line name modules, for `import_modules`."""
    parser.add_argument(f"--{NAME}", metavar="MODULE", dest="imports", action="append", default=[], help=HELP)


def import_modules(names: "Iterable[str]") -> None:
    """Import the modules that the command line names, found from the working directory too.

    Raises:
        DiagnosticError: a module cannot be found, or raises while it is imported.
    """
    for name in names:
        try:
            _import_file(Path(name)) if name.endswith(".py") else _import_name(name)
        except Exception as problem:  # whatever a module of a person raises
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
