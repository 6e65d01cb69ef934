"""Rewrite every sharding of a module, wherever it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation

from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.dialect.walk import operations
from sdy.sharding import TensorSharding


def transform_shardings(root: Operation, change: Callable[[TensorSharding], TensorSharding]) -> None:
    """Replace each sharding in `root` by what `change`, a pure function, makes of it.

    Shardings are met in the order of the text: operations before what is in them, a function's arguments before its
    results, the inputs of an operation before its outputs. `change` is called once for each different sharding.
    """
    transform = _Transform(change)
    for operation in operations(root):
        for attributes in (operation.properties, operation.attributes):
            if attributes:
                attributes.update(transform.changed_entries(attributes))


@dataclass
class _Transform:
    change: Callable[[TensorSharding], TensorSharding]
    attributes: dict[int, tuple[Attribute, Attribute]] = field(default_factory=dict[int, tuple[Attribute, Attribute]])
    """Before and after, by the address of the former, which stays in use while it is here."""
    shardings: dict[TensorSharding, TensorSharding] = field(default_factory=dict[TensorSharding, TensorSharding])

    def changed_entries(self, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
        return {name: new for name, old in attributes.items() if (new := self(old)) is not old}

    def __call__(self, attribute: Attribute) -> Attribute:
        # Operations share most of their attributes, so that each is looked into once.
        known = self.attributes.get(id(attribute))
        if known is None:
            known = self.attributes[id(attribute)] = (attribute, self.changed(attribute))
        return known[1]

    def changed(self, attribute: Attribute) -> Attribute:
        match attribute:
            case TensorShardingAttr():
                new = self.of_sharding(attribute.data)
                return attribute if new is attribute.data else TensorShardingAttr.of(new)
            case TensorShardingPerValueAttr():
                shardings = tuple(map(self.of_sharding, attribute.data))
                return attribute if shardings == attribute.data else TensorShardingPerValueAttr.of(shardings)
            case ArrayAttr():
                elements = [self(element) for element in attribute]
                return attribute if all(map(_is, elements, attribute)) else ArrayAttr(elements)
            case DictionaryAttr():
                entries = self.changed_entries(attribute.data)
                return DictionaryAttr({**attribute.data, **entries}) if entries else attribute
            case _:
                return attribute

    def of_sharding(self, sharding: TensorSharding) -> TensorSharding:
        if sharding not in self.shardings:
            self.shardings[sharding] = self.change(sharding)
        return self.shardings[sharding]


def _is(first: object, second: object) -> bool:
    return first is second
