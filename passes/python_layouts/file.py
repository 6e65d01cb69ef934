"""The parts of a printed file: the mesh, the rules, and the function that applies them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from jax.sharding import PartitionSpec

from sdy.passes.python.expressions import Expression, call, statement, tuple_of
from sdy.passes.python_layouts.constrained import Rule
from sdy.passes.python_layouts.layout_specs import LayoutSpecs
from sdy.passes.python_layouts.paths import Keys
from sdy.passes.python_layouts.received import ReceivedBytes
from sdy.passes.python_layouts.rules import Item, find_rules

_LINE = 88

HOW = (
    "A rule is for the arrays whose path ends as it says, the first one that matches; * "
    "stands for any text, and the name of an argument is the first key of its paths."
)
"""The explanation of the rules of a file."""

RULE_FOR = '''\
def rule_for(path, rules):
    """Return the first rule whose pattern matches the end of a path."""
    where = "/" + keystr(path, simple=True, separator="/")
    where = where.removesuffix("/value") or where
    return next(rule for key, rule in rules.items() if fnmatchcase(where, f"*/{key}"))
'''
"""The function of a file that finds the rule of a leaf."""

Rules = Mapping[str, PartitionSpec]


def argument_rules(specs: LayoutSpecs) -> Rules:
    """Return the rules of the arguments; if they can be, the same for one argument alone, without its name.

    Raises:
        ValueError: Two arguments with one path have different shardings.
    """
    whole = [Item(_without_value(keys), spec) for keys, spec in specs.argument_specs]
    alone = [Item(_without_value(keys[1:]), spec) for keys, spec in specs.argument_specs if len(keys) > 1]
    return find_rules([*whole, *alone]) or _told_apart(whole, "arguments")


def result_rules(specs: LayoutSpecs) -> Rules:
    """Return the rules of the results.

    Raises:
        ValueError: Two results with one path have different shardings.
    """
    return _told_apart([Item(_without_value(keys), spec) for keys, spec in specs.result_specs], "results")


def _without_value(keys: Keys) -> Keys:
    """Return the keys without the last one of a variable of Flax, `value`, which the printed function skips, too."""
    return keys[:-1] if len(keys) > 1 and keys[-1] == "value" else keys


def _told_apart(items: Sequence[Item[PartitionSpec]], kind: str) -> Rules:
    rules = find_rules(items)
    if rules is None:
        raise ValueError(f"two {kind} with the same path have different shardings: give their keys different names")
    return rules


def string(text: str) -> str:
    """Return a Python string literal with the quotes that `ruff format` prefers: double, unless those are escaped."""
    body = repr('"' + text)[2:-1] if "'" not in text else repr(text + '"')[1:-2].replace("\\'", "'")
    double, single = text.count('"'), text.count("'")
    if double <= single:
        return '"' + body.replace('"', '\\"') + '"'
    return "'" + body.replace("'", "\\'") + "'"


def spec(value: Rule) -> Expression:
    """Return a `PartitionSpec`, a tuple of them, or None as an expression."""
    if value is None:
        return Expression("None")
    if isinstance(value, PartitionSpec):
        return call("P", *map(axes_of_dim, value))
    return tuple_of(map(spec, value))


def axes_of_dim(entry: Any) -> str | Expression:
    """Return the entry of a `PartitionSpec` for a dimension as an expression."""
    if isinstance(entry, str):
        return string(entry)
    return tuple_of(map(string, entry)) if entry is not None else "None"


def mapping(name: str, items: Iterable[tuple[str, Expression]]) -> Iterator[str]:
    """Yield the lines of a dictionary, one for each entry."""
    entries = [[*statement(f"{string(key)}: ", value, 1, ",")] for key, value in items]
    yield from _spread(name, "{}", entries)


def sequence(name: str, brackets: str, items: Iterable[Expression]) -> Iterator[str]:
    """Yield the lines of a tuple or a list, one for each item; a tuple of one item is one line, as ruff leaves it."""
    items = [*items]
    if brackets == "()" and len(items) == 1:
        yield from statement(f"{name} = ", tuple_of(items), 0)
    else:
        yield from _spread(name, brackets, [[*statement("", item, 1, ",")] for item in items])


def _spread(name: str, brackets: str, items: Sequence[Sequence[str]]) -> Iterator[str]:
    if not items:
        yield f"{name} = {brackets}"
        return
    yield f"{name} = {brackets[0]}"
    for lines in items:
        yield from lines
    yield brackets[1]


def rule_lines(name: str, rules: Mapping[str, Rule]) -> Iterator[str]:
    """Yield the lines of a dictionary of rules."""
    yield from mapping(name, ((pattern, spec(value)) for pattern, value in rules.items()))


def docstring(*paragraphs: str) -> Iterator[str]:
    """Yield the lines of the file's docstring; paragraphs that begin with a space stay as they are."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += ["", *(paragraph.split("\n") if paragraph.startswith(" ") else wrap(paragraph, _LINE))]
    first, *rest = [line.replace("\\", "\\\\").replace('"', "'") for line in lines[1:]]
    yield f'"""{first}' if rest else f'"""{first}"""'
    yield from (line.rstrip() for line in rest)
    if rest:
        yield '"""'


def mesh_lines(specs: LayoutSpecs) -> Iterator[str]:
    """Yield the lines that make the mesh."""
    axes = specs.axes
    if axes.mesh.device_ids:
        devices = f"[jax.devices()[i] for i in {[*axes.mesh.device_ids]}]"
        yield from statement("DEVICES = ", Expression(devices), 0)
    names = tuple_of(map(string, axes.names))
    sizes = tuple_of(map(str, axes.sizes))
    types = Expression(f"(AxisType.Auto,) * {len(axes.names)}")
    keywords = {"devices": "DEVICES"} if axes.mesh.device_ids else {}
    yield from statement("mesh = ", call("jax.make_mesh", sizes, names, types, **keywords), 0)


def received_text(received: ReceivedBytes | None) -> str:
    """Return what a device receives with the file under `jax.jit`."""
    if received is None:
        return "What a device receives with it under jax.jit was not measured: there were too few devices."
    return str(received)


def file_of(parts: Iterable[Iterable[str]]) -> str:
    """Return the text of a file with two empty lines between its parts, as around functions."""
    return "\n\n\n".join("\n".join(part) for part in parts) + "\n"


def title(specs: LayoutSpecs) -> str:
    """Return the first line of a file."""
    return f"The layout of {specs.name} on {specs.axes.mesh.size} devices: {_shown_mesh(specs)}."


def _shown_mesh(specs: LayoutSpecs) -> str:
    """Return the axes of the mesh as text."""
    return ", ".join(f"{name}={size}" for name, size in zip(specs.axes.names, specs.axes.sizes, strict=True))
