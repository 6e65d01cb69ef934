"""`sdy-save-module`: write the module to a file."""

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.ir.editing import AnalysisPreservingPass
from sdy.text import format as format_module


@dataclass(frozen=True)
class SaveModulePass(AnalysisPreservingPass):
    """Save the module as `DUMP_DIRECTORY/NN.FILE_NAME.mlir`; without a directory, do nothing.

    NN is the two-digit dump index, which sorts the files of a pipeline; a negative one is omitted. Raises
    DiagnosticError if the file cannot be written, for example because the directory does not exist.
    """

    name = "sdy-save-module"
    dump_directory: str = ""
    file_name: str = "module"
    dump_index: int = -1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.dump_directory:
            save_module(op, self.dump_directory, self.file_name, self.dump_index)


def save_module(module: ModuleOp, directory: str, name: str, index: int) -> None:
    """Write `module` to the file `NN.name.mlir` in `directory`, without a number for a negative `index`.

    Raises:
        DiagnosticError: the file cannot be written.
    """
    prefix = f"{index:02}." if index >= 0 else ""
    path = Path(directory) / f"{prefix}{name}.mlir"
    try:
        path.write_text(format_module(module))
    except OSError as problem:
        raise error(module, f"cannot save the module as {path}: {problem.strerror}") from problem
