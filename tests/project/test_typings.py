"""The declarations of `typings/` exist in the libraries, with the declared parameters."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TYPINGS = Path(__file__).parents[2] / "typings"
MODULES = {
    ".".join(path.relative_to(TYPINGS).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(TYPINGS.rglob("*.pyi"))
    if path.read_text()
}


OPTIONAL = ("torch", "torchax")
"""Packages that may be missing where the tests run."""


def imported(name: str) -> ModuleType:
    if name.partition(".")[0] in OPTIONAL:
        return pytest.importorskip(name, reason="torch is not installed: pip install 'sdy[torch]'")
    return import_module(name)


def declared(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Yield the public functions and classes of a stub."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("name", MODULES)
def test_declared_names_exist(name: str):
    module = imported(name)
    missing = [node.name for node in declared(MODULES[name]) if not hasattr(module, node.name)]
    assert missing == []


def wrong_parameters(function: ast.FunctionDef, found: Any) -> list[str]:
    """Return the parameters of a stub's function that the library's function lacks. `**kwargs` accepts all."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except ValueError:  # not a Python function
        return []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return []
    names = {parameter.name for parameter in parameters}
    return [each.arg for each in (*function.args.args, *function.args.kwonlyargs) if each.arg not in names]


@pytest.mark.parametrize("name", MODULES)
def test_declared_parameters_exist(name: str):
    module = imported(name)
    wrong = {
        node.name: wrong_parameters(node, getattr(module, node.name))
        for node in declared(MODULES[name])
        if isinstance(node, ast.FunctionDef)
    }
    assert {function: parameters for function, parameters in wrong.items() if parameters} == {}
