"""Fixes that lint suggests: edits of a program before propagation, as values that can be tried."""

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from sdy.passes.account.lint.edits import Dims, Edit, ShardArgument
from sdy.passes.account.name_lists import several


@dataclass(frozen=True)
class Cure:
    """A suggested fix: edits that belong together."""

    edits: tuple[Edit, ...]

    def apply(self, module: ModuleOp) -> bool:
        """Apply the edits in place, and return whether all have their targets."""
        return all(edit.apply(module) for edit in self.edits)

    @property
    def is_open(self) -> bool:
        """True if an edit leaves the layout of an argument to propagation, rather than naming it."""
        return any(isinstance(edit, ShardArgument) and edit.dims is None for edit in self.edits)

    @property
    def text(self) -> str:
        """The edits as one instruction; arguments with one sharding are listed together."""
        alike: dict[Dims | None, list[str]] = {}
        for edit in self.edits:
            if isinstance(edit, ShardArgument):
                alike.setdefault(edit.dims, []).append(edit.name)
        arguments = [ShardArgument(0, several(names), dims).text for dims, names in alike.items()]
        others = [edit.text for edit in self.edits if not isinstance(edit, ShardArgument)]
        return ", and ".join(dict.fromkeys([*arguments, *others]))
