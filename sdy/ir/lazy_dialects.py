"""Dialects loaded lazily: a file of definitions is imported when one of its names is first looked up.

    STABLEHLO = LazyDialect("stablehlo", __name__, {"dot": "dot dot_general", "sort": "sort"})

A program that contains `stablehlo.dot` imports `dot.py`, which defines it, but not `sort.py`. Tools that
iterate over all definitions, as xDSL's own do, see an ordinary dialect.
"""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import TypeVar

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from sdy.plugins import plugin_dialect

T = TypeVar("T")


class LazyDialect(Dialect):
    """A dialect whose definitions are in the files of a package.

    Args:
        name: The name of the dialect, the prefix of the names that it defines.
        package: The dotted name of the package.
        definitions: For each file of the package, the names that it defines, separated by spaces. The same name may be
            that of an operation and of an attribute.
    """

    def __init__(self, name: str, package: str, definitions: Mapping[str, str]):
        super().__init__(name)
        self._package = package
        self._definitions = definitions

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        """The modules that define each name."""
        files: dict[str, list[str]] = {}
        for file, names in self._definitions.items():
            for name in names.split():
                files.setdefault(f"{self.name}.{name}", []).append(f"{self._package}.{file}")
        return files

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All operations; loads all files."""
        return self._all(Operation)

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types; loads all files."""
        return self._all(Attribute)

    def operations_with(self, name: str) -> Iterator[type[Operation]]:
        """Yield the operations defined in the same file as `name`; none if the dialect does not define `name`."""
        return self._with(name, Operation)

    def attributes_with(self, name: str) -> Iterator[type[Attribute]]:
        """Yield the attributes and types defined in the same file as `name`; see `operations_with`."""
        return self._with(name, Attribute)

    def _all(self, kind: type[T]) -> Iterator[type[T]]:
        for file in dict.fromkeys(file for files in self._files.values() for file in files):
            yield from _defined(file, kind)

    def _with(self, name: str, kind: type[T]) -> Iterator[type[T]]:
        for file in self._files.get(name, ()):
            yield from _defined(file, kind)


class LazyContext(Context):
    """A context that loads lazy dialects file by file, and finds dialects of plugins."""

    def load_registered_dialect(self, name: str) -> None:
        """Load a registered dialect, without the files of a lazy dialect."""
        dialect = self._registered_dialects[name]() if name in self._registered_dialects else None
        if isinstance(dialect, LazyDialect):
            self._loaded_dialects[name] = dialect
        else:
            super().load_registered_dialect(name)

    def get_optional_dialect(self, name: str) -> Dialect | None:
        """Return the dialect `name`, from a plugin if it is not registered; None if it is unknown."""
        if name not in self._registered_dialects and (dialect := plugin_dialect(name)) is not None:
            self.load_dialect(dialect)
        return super().get_optional_dialect(name)

    def clone(self) -> "LazyContext":
        """Return an independent copy of the context."""
        plain = super().clone()
        return LazyContext(**vars(plain))

    def _get_known_op(self, name: str) -> type[Operation] | None:
        if name not in self._loaded_ops and (dialect := self._lazy_dialect(name)) is not None:
            for operation in dialect.operations_with(name):
                self.load_op(operation)
        return super()._get_known_op(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """Return the attribute class `name`; None if it is unknown."""
        self._load_attributes_with(name)
        return super().get_optional_attr(name)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """Return the type class `name`; None if it is unknown."""
        self._load_attributes_with(name)
        return super().get_optional_type(name)

    def _load_attributes_with(self, name: str) -> None:
        if name in self._loaded_attrs or name in self._loaded_types:
            return
        if (dialect := self._lazy_dialect(name)) is not None:
            for attribute in dialect.attributes_with(name):
                self.load_attr_or_type(attribute)

    def _lazy_dialect(self, name: str) -> LazyDialect | None:
        """Return the dialect of the qualified `name` if it is lazy."""
        namespace, dot, _ = name.partition(".")
        dialect = self.get_optional_dialect(namespace) if dot else None
        return dialect if isinstance(dialect, LazyDialect) else None


@cache
def _defined(file: str, kind: type[T]) -> tuple[type[T], ...]:
    """Return the classes of a kind that a file defines, without base classes that have no MLIR name."""
    classes = [each for each in vars(import_module(file)).values() if isinstance(each, type)]
    # issubclass is slow for abstract classes when the answer is no.
    return tuple(each for each in classes if each.__module__ == file and kind in each.__mro__ and "name" in vars(each))
