"""Rewrite every sharding of a module, wherever it is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation

from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.sharding import TensorSharding


def transform_shardings(root: Operation, change: Callable[[TensorSharding], TensorSharding]) -> None:
    """Replace each sharding in `root` by what `change`, a pure function, makes of it.

    Shardings are met in the order of the text: operations before what is in them, a function's arguments before its
    results, the inputs of an operation before its outputs. `change` is called once for each different sharding.
    """
    transform = _Transform(change)
    for operation in root.walk():
        for attributes in (operation.properties, operation.attributes):
            for name, attribute in transform.changed_entries(attributes).items():
                attributes[name] = attribute


@dataclass
class _Transform:
    change: Callable[[TensorSharding], TensorSharding]
    known: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def changed_entries(self, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
        new = {name: self(attribute) for name, attribute in attributes.items()}
        return {name: attribute for name, attribute in new.items() if attribute is not attributes[name]}

    def __call__(self, attribute: Attribute) -> Attribute:
        match attribute:
            case TensorShardingAttr() | TensorShardingPerValueAttr():
                if attribute not in self.known:
                    self.known[attribute] = self.rewrite(attribute)
                return self.known[attribute]
            case ArrayAttr():
                new = [self(element) for element in attribute]
                return attribute if all(map(_is, new, attribute)) else ArrayAttr(new)
            case DictionaryAttr():
                changed = self.changed_entries(attribute.data)
                return DictionaryAttr({**attribute.data, **changed}) if changed else attribute
            case _:
                return attribute

    def rewrite(self, attribute: TensorShardingAttr | TensorShardingPerValueAttr) -> Attribute:
        if isinstance(attribute, TensorShardingAttr):
            new = self.change(attribute.data)
            return attribute if new == attribute.data else TensorShardingAttr(new)
        shardings = tuple(self.change(sharding) for sharding in attribute.data)
        return attribute if shardings == attribute.data else TensorShardingPerValueAttr(shardings)


def _is(first: object, second: object) -> bool:
    return first is second
