"""Collection and transformation of all shardings and meshes in a module."""

from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from functools import partial

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation

from sdy.dialect.attributes import TensorShardingAttr, TensorShardingPerValueAttr
from sdy.ir.walking import attributes_in, operations
from sdy.mesh import Mesh
from sdy.sharding import TensorSharding
from sdy.stablehlo.attributes.replica_group_meshes import transform_mesh


def shardings_in(root: Operation) -> Set[TensorSharding]:
    """Return the set of shardings in `root`."""
    shardings: set[TensorSharding] = set()
    pending = list(attributes_in(root))
    while pending:
        # `isinstance` and class patterns are slow on abstract classes when the answer is no.
        attribute = pending.pop()
        if type(attribute) is TensorShardingAttr:
            shardings.add(attribute.data)
        elif type(attribute) is TensorShardingPerValueAttr:
            shardings.update(attribute.data)
        elif type(attribute) is DictionaryAttr:
            pending += attribute.data.values()
        elif type(attribute) is ArrayAttr:
            pending += attribute.data
    return shardings


def transform_shardings(root: Operation, change: Callable[[TensorSharding], TensorSharding]) -> None:
    """Apply `change`, a pure function, to each sharding in `root`.

    Shardings are visited in textual order: operations in pre-order, arguments before results, inputs before outputs.
    `change` is called once per distinct sharding.
    """
    _transform(root, _ShardingTransform(change))


def transform_meshes(root: Operation, change: Callable[[str | Mesh], str | Mesh]) -> None:
    """Apply `change` to each mesh or mesh name in `root`: in shardings, then in replica groups."""
    in_shardings = _ShardingTransform(lambda sharding: replace(sharding, mesh=change(sharding.mesh)))
    _transform(root, in_shardings, partial(transform_mesh, change=change))


def _transform(root: Operation, *transforms: Callable[[Attribute], Attribute]) -> None:
    # Operations share most of their attributes: each is transformed once.
    before = list(attributes_in(root))
    after = {id(old): new for transform in transforms for old in before if (new := transform(old)) is not old}
    if not after:
        return
    for operation in operations(root):
        for attributes in (operation.properties, operation.attributes):
            for name, old in attributes.items():
                if id(old) in after:
                    attributes[name] = after[id(old)]


@dataclass
class _ShardingTransform:
    change: Callable[[TensorSharding], TensorSharding]
    shardings: dict[TensorSharding, TensorSharding] = field(default_factory=dict[TensorSharding, TensorSharding])

    def __call__(self, attribute: Attribute) -> Attribute:
        if type(attribute) is TensorShardingAttr:
            new = self.of_sharding(attribute.data)
            return attribute if new is attribute.data else TensorShardingAttr.of(new)
        if type(attribute) is TensorShardingPerValueAttr:
            shardings = tuple(map(self.of_sharding, attribute.data))
            return attribute if shardings == attribute.data else TensorShardingPerValueAttr.of(shardings)
        if type(attribute) is DictionaryAttr:
            entries = {name: self(entry) for name, entry in attribute.data.items()}
            same = all(map(_is, entries.values(), attribute.data.values()))
            return attribute if same else DictionaryAttr(entries)
        if type(attribute) is ArrayAttr:
            elements = [self(element) for element in attribute]
            return attribute if all(map(_is, elements, attribute)) else ArrayAttr(elements)
        return attribute

    def of_sharding(self, sharding: TensorSharding) -> TensorSharding:
        if sharding not in self.shardings:
            self.shardings[sharding] = self.change(sharding)
        return self.shardings[sharding]


def _is(first: object, second: object) -> bool:
    return first is second
