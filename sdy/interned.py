"""Values of which there is one object each: equal ones are the same object.

What a compiler does with shardings is mostly to compare them and to look up what it knows about them. Where equal
values are one object, both take as long as they do for the object's address, however large the value.

One object that serves the whole process must be right: each field is of the very type that its class declares, or the
value is not made. To Python 2, 2.0 and True are near enough to find each other; here they are not.
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


class _OneObjectEach(type):
    _objects: WeakValueDictionary[Items, Any]
    """By the values of all fields, and by what a class was called with; the latter may end before the last fields."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        cls._objects = WeakValueDictionary()

    # To a type checker the parameters are those of the class.
    if not TYPE_CHECKING:

        def __call__(cls, *arguments: object, **named: object) -> Any:
            # Most values are there already, and to look for one takes a fraction of the time of making it.
            if not named and (known := cls._found(arguments)) is not None:
                return known
            made = super().__call__(*arguments, **named)
            values = _values_of(cls)(made)
            value = cls._found(values)
            if value is None:
                _check_types(cls, values)
                value = cls._objects[_key(values)] = made
            if not named:
                cls._objects[_key(arguments)] = value
            return value

        def _found(cls, values: Items) -> Any:
            """The value whose first fields are these, None where there is none yet."""
            try:
                return cls._objects.get(values)
            except TypeError:  # what cannot be hashed is of the wrong type, too
                return None


class _Number:
    """A number in a key, which only a number of its very type finds."""

    __slots__ = ("_number",)

    def __init__(self, number: int):
        self._number = number

    def __hash__(self) -> int:
        return hash(self._number)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, self.__class__):  # at the end of the process, the module has no `_Number` any more
            other = other._number
        return other.__class__ is self._number.__class__ and other == self._number


def _key(values: Items) -> Items:
    return tuple(map(_part_of_key, values))


def _part_of_key(value: object) -> object:
    if isinstance(value, int):
        return _Number(value)
    return _key(cast(Items, value)) if isinstance(value, tuple) else value


class Interned(metaclass=_OneObjectEach):
    """The base of frozen dataclasses, made with `eq=False`, whose fields are hashable.

    Raises:
        TypeError: a field is not of its type.
    """

    __slots__ = ("__weakref__",)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __reduce__(self) -> tuple[type["Interned"], Items]:
        return type(self), _values_of(type(self))(self)


@cache
def _values_of(cls: type[Interned]) -> Callable[[Interned], Items]:
    """What gives the values of an object's fields."""
    names = list(_types_of(cls))
    # Of a single name it gives the value by itself.
    return attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)


@cache
def _types_of(cls: type[Interned]) -> dict[str, Any]:
    """The type of each field."""
    types = get_type_hints(cls)
    return {field.name: types[field.name] for field in fields(cls) if field.init}


@cache
def _checks_of(cls: type[Interned]) -> dict[str, Check]:
    """For each field what says whether a value is of its type, made once: a program has thousands of values."""
    return {name: _check_of(type_) for name, type_ in _types_of(cls).items()}


def _check_types(cls: type[Interned], values: Items) -> None:
    for (name, is_of_type), value in zip(_checks_of(cls).items(), values, strict=True):
        if not is_of_type(value):
            type_ = _type_text(_types_of(cls)[name])
            raise TypeError(f"{cls.__name__}: '{name}' is to be of the type {type_}, not {value!r}")


def _check_of(type_: Any) -> Check:
    """Whether a value is of the type of a field, and not of a subtype: True is no integer."""
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
    """A type as its class declares it."""
    text = repr(type_) if get_args(type_) else type_.__name__
    return re.sub(r"\b(\w+\.)+", "", text)
