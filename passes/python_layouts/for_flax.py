"""The files of a layout for Flax and MaxText, with names of logical axes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jax.sharding import PartitionSpec

from sdy.passes.python.expressions import Expression, list_of, tuple_of
from sdy.passes.python_layouts.file import (
    HOW,
    RULE_FOR,
    argument_rules,
    docstring,
    file_of,
    mesh_lines,
    received_text,
    rule_lines,
    sequence,
    statement,
    string,
    title,
)
from sdy.passes.python_layouts.layout_specs import LayoutSpecs

_USAGE = "     flax.linen.logical_to_mesh_sharding(logical_axes(params), mesh, LOGICAL_AXIS_RULES)"


@dataclass(frozen=True)
class LogicalFormat:
    """A library's form of the rules from logical axes to axes of the mesh.

    Attributes:
        usage: How to use the rules.
        how: A note on the names of the logical axes.
        brackets: The brackets of the rules.
        group: The expression of a rule, a tuple or a list.
        axes: The expression of a rule's axes of the mesh, from string literals.
        has_mesh_axes: Whether the names of the mesh's axes are a part of the library's configuration.
    """

    usage: str
    how: str
    brackets: str
    group: Callable[[Iterable[Expression | str]], Expression]
    axes: Callable[[Sequence[str]], Expression | str]
    has_mesh_axes: bool

    def file(self, specs: LayoutSpecs) -> str:
        """Return a file with names of logical axes by path, and the rules from them to axes of the mesh."""
        rules = argument_rules(specs)
        entries = dict.fromkeys(entry for each in rules.values() for entry in each if entry is not None)
        logical = {
            pattern: PartitionSpec(*(None if entry is None else _logical_name(entry) for entry in each))
            for pattern, each in rules.items()
        }
        return file_of(
            (
                [
                    *docstring(title(specs), self.usage, self.how, HOW, received_text(specs.received_alone)),
                    "",
                    "from fnmatch import fnmatchcase",
                    "",
                    "import jax",
                    "from jax.sharding import AxisType",
                    "from jax.sharding import PartitionSpec as P",
                    "from jax.tree_util import keystr, tree_map_with_path",
                    "",
                    *mesh_lines(specs),
                    "",
                    *self._mesh_axes(specs),
                    *sequence("LOGICAL_AXIS_RULES", self.brackets, map(self._rule, entries)),
                    "",
                    *statement("NAMES = ", tuple_of(map(string, specs.argument_names)), 0),
                    "",
                    *rule_lines("LOGICAL_AXES", logical),
                ],
                RULE_FOR.splitlines(),
                _LOGICAL_AXES.splitlines(),
            )
        )

    def _mesh_axes(self, specs: LayoutSpecs) -> Iterator[str]:
        if self.has_mesh_axes:
            yield from statement("MESH_AXES = ", self.group(map(string, specs.axes.names)), 0)
            yield ""

    def _rule(self, entry: str | tuple[str, ...]) -> Expression:
        axes = [entry] if isinstance(entry, str) else entry
        return self.group([string(_logical_name(entry)), self.axes([*map(string, axes)])])


FLAX = LogicalFormat(
    _USAGE,
    "The program does not have the names of logical axes: each is named after its axes of the mesh.",
    "()",
    tuple_of,
    lambda axes: axes[0] if len(axes) == 1 else tuple_of(axes),
    has_mesh_axes=False,
)

MAXTEXT = LogicalFormat(
    f'     config = {{"mesh_axes": MESH_AXES, "logical_axis_rules": LOGICAL_AXIS_RULES}}\n{_USAGE}',
    "The program does not have MaxText's names of logical axes, such as embed: each is named after its axes of the "
    "mesh. Replace them by those of the layers.",
    "[]",
    list_of,
    list_of,
    has_mesh_axes=True,
)


def _logical_name(entry: str | tuple[str, ...]) -> str:
    return "over_" + ("_".join(entry) if isinstance(entry, tuple) else entry)


_LOGICAL_AXES = '''\
def logical_axes(tree):
    """Return the tree of logical axes for the tuple of all arguments, or for one of them."""

    def axes(path, leaf):
        return rule_for(path, LOGICAL_AXES)

    if type(tree) is tuple and len(tree) == len(NAMES):
        named = tree_map_with_path(axes, dict(zip(NAMES, tree, strict=True)))
        return tuple(named[name] for name in NAMES)
    return tree_map_with_path(axes, tree)
'''
