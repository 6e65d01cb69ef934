"""Values of which there is one object each: equal ones are the same object.

What a compiler does with shardings is mostly to compare them and to look up what it knows about them. Where equal
values are one object, both take as long as they do for the object's address, however large the value.
"""

from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary


class _OneObjectEach(type):
    _objects: WeakValueDictionary[tuple[object, ...], Any]
    """By the values of all fields, and by what a class was called with; the latter may end before the last fields."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._objects = WeakValueDictionary()

    # To a type checker the parameters are those of the class.
    if not TYPE_CHECKING:

        def __call__(cls, *arguments: object, **named: object) -> Any:
            # Most values are there already, and to look for one takes a fraction of the time of making it.
            if not named and (known := cls._objects.get(arguments)) is not None:
                return known
            made = super().__call__(*arguments, **named)
            value = cls._objects.setdefault(made._values(), made)
            if not named:
                cls._objects[arguments] = value
            return value


class Interned(metaclass=_OneObjectEach):
    """The base of frozen dataclasses, made with `eq=False`, whose fields are hashable."""

    __slots__ = ("__weakref__",)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def _values(self) -> tuple[object, ...]:
        return _values_of(self.__class__)(self)

    def __reduce__(self) -> tuple[type["Interned"], tuple[object, ...]]:
        return type(self), self._values()


@cache
def _values_of(cls: type[Interned]) -> Callable[[Interned], tuple[object, ...]]:
    """What gives the values of an object's fields."""
    names = [field.name for field in fields(cls) if field.init]
    # Of a single name it gives the value by itself.
    return attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
