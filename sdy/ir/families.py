"""Dialects in families: what a file defines is loaded with that file, when something of it is first named.

    STABLEHLO = FamilyDialect("stablehlo", __name__)

A program that names `stablehlo.dot` loads `dot.py`, the file of the package that says `name = "stablehlo.dot"`, and not
`sort.py`. To whom asks for all that the dialect has, as xDSL's own tools do, it is a dialect like any other.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from xdsl.context import Context
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from sdy.plugins import plugin_dialect

T = TypeVar("T")


class FamilyDialect(Dialect):
    """A dialect whose definitions are in the files of `package`, each with its name written out in its class."""

    def __init__(self, name: str, package: str):
        super().__init__(name)
        self._package = package

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        """The modules that define something of a name, which their text says: to import them all would take long."""
        says_name = re.compile(rf'\n    name = "({re.escape(self.name)}\.[\w.-]+)"\n')
        [folder] = map(Path, import_module(self._package).__path__)
        files: dict[str, list[str]] = {}
        for path in sorted(folder.rglob("*.py")):
            module = ".".join((self._package, *path.relative_to(folder).with_suffix("").parts))
            for name in says_name.findall(path.read_text(encoding="utf-8")):
                files.setdefault(name, []).append(module)
        return files

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All operations; this loads all files."""
        return self._all(Operation)

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types; this loads all files."""
        return self._all(Attribute)

    def operations_with(self, name: str) -> Iterator[type[Operation]]:
        """The operations of the family to which the one called `name` belongs; none if the dialect has none such."""
        return self._with(name, Operation)

    def attributes_with(self, name: str) -> Iterator[type[Attribute]]:
        """As `operations_with`, for attributes and types."""
        return self._with(name, Attribute)

    def _all(self, kind: type[T]) -> Iterator[type[T]]:
        for file in dict.fromkeys(file for files in self._files.values() for file in files):
            yield from _defined(file, kind)

    def _with(self, name: str, kind: type[T]) -> Iterator[type[T]]:
        for file in self._files.get(name, ()):
            yield from _defined(file, kind)


class FamilyContext(Context):
    """A context that loads of dialects in families those alone of which something is named.

    It knows the dialects that are registered with it, and those of other packages that are installed.
    """

    def load_registered_dialect(self, name: str) -> None:
        """Load a dialect; of one in families nothing yet."""
        dialect = self._registered_dialects[name]() if name in self._registered_dialects else None
        if isinstance(dialect, FamilyDialect):
            self._loaded_dialects[name] = dialect
        else:
            super().load_registered_dialect(name)

    def get_optional_dialect(self, name: str) -> Dialect | None:
        """The dialect called `name`, None where there is none."""
        if name not in self._registered_dialects and (dialect := plugin_dialect(name)) is not None:
            self.load_dialect(dialect)
        return super().get_optional_dialect(name)

    def clone(self) -> "FamilyContext":
        """A context that knows the same, and learns apart from this one."""
        plain = super().clone()
        return FamilyContext(**vars(plain))

    def _get_known_op(self, name: str) -> type[Operation] | None:
        if name not in self._loaded_ops and (dialect := self._family_dialect(name)) is not None:
            for operation in dialect.operations_with(name):
                self.load_op(operation)
        return super()._get_known_op(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """The attribute called `name`, None where there is none."""
        self._load_attributes_with(name)
        return super().get_optional_attr(name)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """The type called `name`, None where there is none."""
        self._load_attributes_with(name)
        return super().get_optional_type(name)

    def _load_attributes_with(self, name: str) -> None:
        if name in self._loaded_attrs or name in self._loaded_types:
            return
        if (dialect := self._family_dialect(name)) is not None:
            for attribute in dialect.attributes_with(name):
                self.load_attr_or_type(attribute)

    def _family_dialect(self, name: str) -> FamilyDialect | None:
        """The dialect of what is called `name`, if it is in families."""
        namespace, dot, _ = name.partition(".")
        dialect = self.get_optional_dialect(namespace) if dot else None
        return dialect if isinstance(dialect, FamilyDialect) else None


@cache
def _defined(file: str, kind: type[T]) -> tuple[type[T], ...]:
    """What of a kind a file defines, without the bases that have no name of their own."""
    classes = [each for each in vars(import_module(file)).values() if isinstance(each, type)]
    # With abstract classes, issubclass is slow to say no.
    return tuple(each for each in classes if each.__module__ == file and kind in each.__mro__ and "name" in vars(each))
