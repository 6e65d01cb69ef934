"""Interned values: equal values are one object.

A compiler mostly compares shardings and looks up facts about them. Both take constant time, however large the value, if
equal values are the same object.

Since one object serves the whole process, each field must have exactly the type that its class declares; otherwise the
constructor raises TypeError. 2, 2.0 and True are equal in Python, but not here.
"""

import re
from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints
from weakref import WeakValueDictionary

Items: TypeAlias = tuple[object, ...]
Check: TypeAlias = Callable[[object], bool]


class _InterningMeta(type):
    _objects: WeakValueDictionary[Items, Any]
    """Objects by the values of all fields, and by the positional arguments of calls, which may omit trailing fields."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._objects = WeakValueDictionary()

    # Type checkers see the parameters of the class.
    if not TYPE_CHECKING:

        def __call__(cls, *arguments: object, **named: object) -> Any:
            # Most values exist already, and a look-up is much cheaper than construction.
            if not named and (known := cls._lookup(arguments)) is not None:
                return known
            created = super().__call__(*arguments, **named)
            values = _values_of(cls)(created)
            value = cls._lookup(values)
            if value is None:
                _check_types(cls, values)
                value = cls._objects[_key(values)] = created
            if not named:
                cls._objects[_key(arguments)] = value
            return value

        def _lookup(cls, values: Items) -> Any:
            """Return the object whose leading fields are `values`, if it exists."""
            try:
                return cls._objects.get(values)
            except TypeError:  # an unhashable value has the wrong type, too
                return None


class _Number:
    """A number in a key, equal only to numbers of exactly its type."""

    __slots__ = ("_number",)

    def __init__(self, number: int):
        self._number = number

    def __hash__(self) -> int:
        return hash(self._number)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, self.__class__):  # at interpreter shutdown, `_Number` may no longer exist
            other = other._number
        return other.__class__ is self._number.__class__ and other == self._number


def _key(values: Items) -> Items:
    return tuple(map(_key_element, values))


def _key_element(value: object) -> object:
    if isinstance(value, int):
        return _Number(value)
    return _key(cast(Items, value)) if isinstance(value, tuple) else value


class Interned(metaclass=_InterningMeta):
    """Base class of interned frozen dataclasses, declared with `eq=False`, whose fields are hashable.

    Raises:
        TypeError: A field does not have its declared type.
    """

    __slots__ = ("__weakref__",)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __reduce__(self) -> tuple[type["Interned"], Items]:
        return type(self), _values_of(type(self))(self)


@cache
def _values_of(cls: type[Interned]) -> Callable[[Interned], Items]:
    """Return a function that returns the values of an object's fields."""
    names = list(_types_of(cls))
    # attrgetter of one name returns the value, not a tuple.
    return attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)


@cache
def _types_of(cls: type[Interned]) -> dict[str, Any]:
    """Return the type of each field."""
    types = get_type_hints(cls)
    return {field.name: types[field.name] for field in fields(cls) if field.init}


@cache
def _checks_of(cls: type[Interned]) -> dict[str, Check]:
    """Return a type check for each field; cached, as programs have thousands of values."""
    return {name: _check_of(type_) for name, type_ in _types_of(cls).items()}


def _check_types(cls: type[Interned], values: Items) -> None:
    for (name, is_of_type), value in zip(_checks_of(cls).items(), values, strict=True):
        if not is_of_type(value):
            type_ = _type_text(_types_of(cls)[name])
            raise TypeError(f"{cls.__name__}: '{name}' must be of type {type_}, not {value!r}")


def _check_of(type_: Any) -> Check:
    """Return a check that a value has exactly the type of a field, not a subtype: True is not an integer."""
    kind, arguments = get_origin(type_), get_args(type_)
    if kind is Literal:
        return lambda value: value in arguments
    checks = [_check_of(each) for each in arguments if each is not ...]
    if kind in (Union, UnionType):
        return lambda value: any(check(value) for check in checks)
    if kind is not tuple:
        return lambda value: type(value) is type_
    if ... in arguments:
        return lambda value: isinstance(value, tuple) and all(map(checks[0], cast(Items, value)))
    return lambda value: (
        isinstance(value, tuple)
        and len(cast(Items, value)) == len(checks)
        and all(check(item) for check, item in zip(checks, cast(Items, value), strict=True))
    )


def _type_text(type_: Any) -> str:
    """Format a type as its class declares it."""
    text = repr(type_) if get_args(type_) else type_.__name__
    return re.sub(r"\b(\w+\.)+", "", text)
