"""The paths of arguments and results in their trees, as texts such as `params/blocks/0/kernel`."""

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

from jax.tree_util import keystr, tree_flatten_with_path
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from sdy.passes.common.argument_names import given_name
from sdy.passes.jax.bindings.call_trees import CallTrees

Keys = tuple[str, ...]
"""The keys on the way to an array: of the arguments' tree, the name of the argument first."""

_RESULT = "jax.result_info"
_FLAT_INDEX = re.compile(r"<flat index (\d+)>")


def argument_keys(main: FuncOp, trees: CallTrees) -> tuple[Sequence[Keys], Sequence[str]]:
    """Return the keys of each leaf of the arguments' tree, and the names of the positional arguments.

    Without a tree, the leaves are the arguments of `main`.
    """
    given = [_parsed(given_name(argument)) for argument in main.args]
    if trees.arguments is None:
        keys = [names or (str(index),) for index, names in enumerate(given)]
        return keys, list(dict.fromkeys(first for first, *_ in keys))
    names: dict[int | str, str] = {}
    paths = [path for path, _ in tree_flatten_with_path(trees.arguments)[0]]
    for path, number in zip(paths, trees.numbers, strict=True):
        if number is not None and not path[0].idx and path[1].idx not in names:
            head = given[number][: len(given[number]) - len(path) + 2]
            names[path[1].idx] = "/".join(head) or str(path[1].idx)
    positional = [names.get(index, str(index)) for index in range(len(trees.arguments[0]))]
    if len({*positional}) < len(positional):
        positional = [str(index) for index in range(len(positional))]
    keys: list[Keys] = [
        (path[1].key if path[0].idx else positional[path[1].idx], *(_text(each) for each in path[2:])) for path in paths
    ]
    return keys, positional


def result_keys(main: FuncOp, trees: CallTrees) -> Sequence[Keys]:
    """Return the keys of each result."""
    if trees.results is not None:
        return [tuple(map(_text, path)) for path, _ in tree_flatten_with_path(trees.results)[0]]
    infos = [entry.data.get(_RESULT) for entry in main.res_attrs or ()] or [None] * len(main.function_type.outputs)
    parsed = [_parsed(info.data) if isinstance(info, StringAttr) else () for info in infos]
    return [keys[1:] or (str(index),) for index, keys in enumerate(parsed)]


def joined(keys: Iterable[str]) -> str:
    """Return keys as one text."""
    return "/".join(keys)


def _text(key: Any) -> str:
    return keystr((key,), simple=True)


def _parsed(name: str) -> Keys:
    """Return the keys in a name that JAX gave, such as `params['layers'][3].kernel`."""
    try:
        node = ast.parse(_FLAT_INDEX.sub(r"\1", name), mode="eval").body
    except (SyntaxError, ValueError):
        return (name,) if name else ()
    keys: list[str] = []
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value=inner, attr=key):
                keys.append(key)
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                keys.append(str(key))
            case ast.Subscript(value=inner, slice=key):
                keys.append(ast.unparse(key))
            case _:
                return (name,)
        node = inner
    return (node.id, *reversed(keys))
