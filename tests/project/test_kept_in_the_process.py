"""State that outlives a program: this file lists all of it, with its bound.

Not listed are bounded caches, the objects of `sdy.interned`, which are freed with their last user, and the table of
`sdy.ir.operation_key`, which has a limit.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import sdy

CLASSES = "an entry for each class of operations or attributes"
REGISTRY = "one registration per name"

UNBOUNDED_CACHES = {
    "sdy.foreign_dialects._is_foreign_class": CLASSES,
    "sdy.array_types.element_dtype": "an entry for each element type",
    "sdy.dialect.shardings._accessor_of": CLASSES,
    "sdy.extras.installed_version": "an entry for jaxlib",
    "sdy.interned._checks_of": "an entry for each class of values",
    "sdy.interned._types_of": "an entry for each class of values",
    "sdy.interned._values_of": "an entry for each class of values",
    "sdy.ir.lazy_dialects._defined": "an entry for each file that defines operations, and one for attributes",
    "sdy.ir.fast_access.trait_of_class": CLASSES,
    "sdy.ir.walking._is_one_of": CLASSES,
    "sdy.passes.blocks.kernel._quick_options": "a call without arguments",
    "sdy.passes.common.symbol_dce._nested_attributes_getter": CLASSES,
    "sdy.passes.jax.api.compiler.install_hook": "a call without arguments",
    "sdy.passes.jax.api.persistent_cache._source": "a call without arguments",
    "sdy.passes.jax.program.rounding._epsilon": "an entry for each element type",
    "sdy.passes.jax.program.rounding._epsilon_of": "an entry for each element type",
    "sdy.passes.propagation.directions._direction": "an entry for each of a few dozen cases",
    "sdy.passes.propagation.reading.reader._is_plain": CLASSES,
    "sdy.passes.propagation.reading.routes.forwards_operands": CLASSES,
    "sdy.passes.spec._grammar": "a call without arguments",
    "sdy.passes.spmd.ops._tables": "a call without arguments",
    "sdy.stablehlo.checks.reducers.scalar": "an entry for each element type",
    "sdy.text.dialects._prototype": "a call without arguments",
    "sdy.text.printing.versions.installed_syntax": "a call without arguments",
    "sdy.text.reading.generic_form._default_properties": CLASSES,
    "sdy.text.verification.memoized_checks.is_verified_by_body": CLASSES,
    "sdy.text.verification._checks": CLASSES,
    "sdy.text.verification._may_be_terminator": CLASSES,
    "sdy.text.verification._needs_more_than_key": CLASSES,
}
"""Unbounded caches, and why they stay small."""

STATE = {
    "sdy.blocks.costs._intermediates": REGISTRY,
    "sdy.blocks.registry._functions": REGISTRY,
    "sdy.diagnostics._sources": "64 texts, under a lock",
    "sdy.interpreter.registry._semantics": REGISTRY,
    "sdy.ir.walking._cache": "walks over a module, until a `with` block ends",
    "sdy.operators.registry._operators": REGISTRY,
    "sdy.plugins._loaded": "the dialects of plugins, under a lock",
    "sdy.plugins._pending": "the entry points of plugins that are not loaded yet, under a lock",
    "sdy.passes.jax.bindings.from_bindings._known": "a number of attributes, above which all are dropped",
    "sdy.passes.propagation.step._steps": "up to a number of steps, above which all are dropped",
    "sdy.rules.call_targets._own": REGISTRY,
    "sdy.rules.call_targets._targets": REGISTRY,
    "sdy.rules.registry._all_by_rule": "one for each memoized function of rules",
    "sdy.rules.registry._by_result": REGISTRY,
    "sdy.rules.registry._elementwise": REGISTRY,
    "sdy.rules.registry._looks_around": REGISTRY,
    "sdy.rules.registry._makers": REGISTRY,
    "sdy.rules.registry._met": "the names of dialects whose rules are loaded",
    "sdy.rules.registry._movements": REGISTRY,
    "sdy.rules.registry._warned": "the names of operations without a rule",
    "sdy.rules.registry._without_rule": REGISTRY,
    "sdy.text.bytecode.jaxlib_converter._diagnostics": "what jaxlib says of one file, in a process of its own",
    "sdy.text.printing.names._names_of_type": CLASSES,
    "sdy.text.reading.attribute_cache._tensor_types": "a number of types, above which all are dropped",
}
"""Mutable module-level containers, and the bound of each."""


def modules() -> Iterator[ModuleType]:
    """Yield all modules, except those that need torch if it is not installed."""
    for found in walk_packages(sdy.__path__, "sdy."):
        try:
            yield import_module(found.name)
        except ModuleNotFoundError as problem:
            if problem.name not in ("torch", "torchax"):
                raise


def functions_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions and methods that `module` defines."""
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield from ((f"{name}.{inner}", method) for inner, method in vars(value).items())
        elif getattr(value, "__module__", None) == module.__name__:
            yield name, value


def containers_of(module: ModuleType) -> Iterator[str]:
    """Yield the names of module variables, but not constants, that are declared as dictionaries, sets or lists."""
    assert module.__file__
    for statement in ast.parse(Path(module.__file__).read_text()).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=declared):
                is_container = re.search(r"\b(dict|set|list)\[", ast.unparse(declared)) is not None
            case ast.Assign(targets=[ast.Name(id=name)]):
                is_container = isinstance(getattr(module, name), dict | set | list)
            case _:
                continue
        if is_container and name.islower() and not name.startswith("__"):
            yield name


def test_what_is_cached_without_a_limit_does_not_grow():
    found = {
        f"{module.__name__}.{name}"
        for module in modules()
        for name, function in functions_of(module)
        if hasattr(function, "cache_parameters") and function.cache_parameters()["maxsize"] is None
    }
    assert found == UNBOUNDED_CACHES.keys()


def test_what_changes_in_modules_is_bounded():
    found = {f"{module.__name__}.{name}" for module in modules() for name in containers_of(module)}
    assert found == STATE.keys()
