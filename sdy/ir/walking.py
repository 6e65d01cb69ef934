"""Fast, cached walks over all operations nested in an operation.

Most passes look for the few operations that concern them, and the search is most of their cost: the operations of a
large module are scattered in memory. A list takes half the time of `Operation.walk`, which resumes a generator for each
enclosing region at each operation; it is a snapshot that edits do not change; and it has no limit on the nesting depth.

Few passes insert or move operations, so that one pass can reuse the walk of another. In `cached_walks()`, walks are
cached until `invalidate()`, which must be called when an operation is inserted, moved or erased, as `sdy.ir.editing`
does. `uncached_walks()` turns the cache off for code that does not call it. In `checked_walks()`, which all tests use,
cached walks are compared with new ones, to detect missing calls of `invalidate`.
"""

import math
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from itertools import chain
from typing import TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import OpTrait

from sdy.ir.fast_access import trait_of_class

OperationT = TypeVar("OperationT", bound=Operation)


def operations(root: Operation) -> Sequence[Operation]:
    """Return `root` and all operations nested in it, in the order of the text: each before its nested operations."""
    return _walk(root).outside_in


def nesting_operations(root: Operation) -> Sequence[Operation]:
    """Return the operations with regions in `root`, itself included, in the order of the text."""
    return _walk(root).nesting


def operations_inside_out(root: Operation) -> Sequence[Operation]:
    """Return the operations nested in `root`, then `root`: each after its nested operations."""
    return _walk(root).inside_out


def operations_of(root: Operation, *classes: type[OperationT]) -> Sequence[OperationT]:
    """Return the operations of these classes in `root`, itself included, in the order of the text."""
    walk = _walk(root)
    return cast(Sequence[OperationT], walk.of([kind for kind in walk.classes if _is_one_of(kind, classes)]))


def operations_with(root: Operation, *traits: type[OpTrait]) -> Sequence[Operation]:
    """Return the operations in `root`, itself included, that have one of these traits, in the order of the text."""
    walk = _walk(root)
    return walk.of([kind for kind in walk.classes if any(trait_of_class(kind, trait) for trait in traits)])


def innermost_first(ops: Iterable[OperationT]) -> list[OperationT]:
    """Reorder `ops`, which are in the order of the text, so that each comes after those nested in it."""
    ordered: list[OperationT] = []
    around: list[OperationT] = []
    for op in ops:
        while around and not around[-1].is_ancestor(op):
            ordered.append(around.pop())
        around.append(op)
    return ordered + around[::-1]


def attributes_in(root: Operation) -> Iterable[Attribute]:
    """Return the distinct property and attribute objects of all operations in `root`, itself included."""
    by_id: dict[int, Attribute] = {}
    for op in operations(root):
        if properties := op.properties:
            for attribute in properties.values():
                by_id[id(attribute)] = attribute
        if attributes := op.attributes:
            for attribute in attributes.values():
                by_id[id(attribute)] = attribute
    return by_id.values()


@contextmanager
def cached_walks() -> Generator[None]:
    """Cache walks in the `with` block until `invalidate` is called or the outermost such block ends."""
    token = _cache.set({} if (cache := _cache.get()) is None else cache)
    try:
        yield
    finally:
        _cache.reset(token)


@contextmanager
def uncached_walks() -> Generator[None]:
    """Disable the cache in the `with` block, which may edit operations without calling `invalidate`."""
    invalidate()
    with _without_cache():
        yield


@contextmanager
def _without_cache() -> Generator[None]:
    token = _cache.set(None)
    try:
        yield
    finally:
        _cache.reset(token)


@contextmanager
def checked_walks(most: float = math.inf) -> Generator[None]:
    """Raise AssertionError in the `with` block if a cached walk over at most `most` operations is outdated."""
    token = _checked.set(most)
    try:
        yield
    finally:
        _checked.reset(token)


def invalidate(around: Operation | None = None) -> None:
    """Drop cached walks after operations were inserted, moved or erased in `around`, or anywhere by default."""
    cache = _cache.get()
    if not cache:
        return
    if around is None:
        cache.clear()
    while around is not None:
        cache.pop(id(around), None)
        block = around.parent
        around = block and block.parent and block.parent.parent


class _Walk:
    """The walk over `root`, which collects everything needed of an operation at one visit.

    An operation that has not been accessed for a while is not in the processor's cache. Reading its class again, or
    appending it to another list, takes several times as long as everything else here.
    """

    def __init__(self, root: Operation):
        self.root = root
        self.outside_in = [root]
        self.nesting = [root] if root.regions else []
        self.by_class: defaultdict[type[Operation], list[Operation]] = defaultdict(list, {root.__class__: [root]})
        add, add_nesting, by_class = self.outside_in.append, self.nesting.append, self.by_class
        pending = _first_operations(root)
        while pending:
            op = pending.pop()
            while op is not None:
                add(op)
                by_class[op.__class__].append(op)
                if op.regions:
                    add_nesting(op)
                    pending.append(op.next_op)
                    pending += _first_operations(op)
                    break
                # The property `next_op` costs as much as everything else here.
                op = op._next_op  # pyright: ignore[reportPrivateUsage]

    @property
    def classes(self) -> Set[type[Operation]]:
        return self.by_class.keys()

    @cached_property
    def inside_out(self) -> list[Operation]:
        return _inside_out(self.root)

    def of(self, classes: Sequence[type[Operation]]) -> Sequence[Operation]:
        """Return the operations of exactly these classes, all of them classes of the walk."""
        if len(classes) < 2:
            return self.by_class[classes[0]] if classes else ()
        return [op for op in self.outside_in if op.__class__ in classes]


class _ModuleWalk:
    """The walk over the module `root`, concatenated from the cached walks over its functions.

    After an edit, only the walk over the edited function is built again.
    """

    def __init__(self, root: ModuleOp):
        self.root = root
        self.parts = [_walk(op) for op in root.ops]
        self._by_classes: dict[tuple[type[Operation], ...], Sequence[Operation]] = {}

    @cached_property
    def outside_in(self) -> list[Operation]:
        return [self.root, *chain.from_iterable(part.outside_in for part in self.parts)]

    @cached_property
    def nesting(self) -> list[Operation]:
        return [self.root, *chain.from_iterable(part.nesting for part in self.parts)]

    @cached_property
    def inside_out(self) -> list[Operation]:
        return [*chain.from_iterable(part.inside_out for part in self.parts), self.root]

    @cached_property
    def classes(self) -> Set[type[Operation]]:
        return {ModuleOp}.union(*(part.classes for part in self.parts))

    def of(self, classes: Sequence[type[Operation]]) -> Sequence[Operation]:
        """Return the operations of exactly these classes, all of them classes of the walk."""
        key = tuple(classes)
        if key not in self._by_classes:
            occurring = ([kind for kind in classes if kind in part.classes] for part in self.parts)
            matches = chain.from_iterable(part.of(kinds) for part, kinds in zip(self.parts, occurring, strict=True))
            self._by_classes[key] = [self.root, *matches] if ModuleOp in classes else [*matches]
        return self._by_classes[key]


def _outside_in(root: Operation) -> list[Operation]:
    """Return `root` and all operations nested in it, in less time than a `_Walk` takes."""
    walk = [root]
    add = walk.append
    pending = _first_operations(root)
    while pending:
        op = pending.pop()
        while op is not None:
            add(op)
            if op.regions:
                pending.append(op.next_op)
                pending += _first_operations(op)
                break
            op = op._next_op  # pyright: ignore[reportPrivateUsage]
    return walk


def _inside_out(root: Operation) -> list[Operation]:
    reversed_walk = [root]
    pending = [block.last_op for region in root.regions for block in region.blocks]
    while pending:
        op = pending.pop()
        while op is not None:
            reversed_walk.append(op)
            if op.regions:
                pending.append(op.prev_op)
                pending += [block.last_op for region in op.regions for block in region.blocks]
                break
            op = op.prev_op
    reversed_walk.reverse()
    return reversed_walk


_cache: ContextVar[dict[int, "_Walk | _ModuleWalk"] | None] = ContextVar("cache", default=None)
"""Cached walks by the `id` of their root; None outside of `cached_walks()`."""

_checked: ContextVar[float] = ContextVar("checked", default=0)
"""The size of the longest cached walk that is compared with a new one; 0 if none is."""


def _walk(root: Operation) -> _Walk | _ModuleWalk:
    cache = _cache.get()
    if cache is None:
        return _new_walk(root)
    walk = cache.get(id(root))
    if walk is None:
        walk = cache[id(root)] = _new_walk(root)
    elif (most := _checked.get()) and len(walk.outside_in) <= most:
        assert walk.outside_in == _outside_in(root), f"'{root.name}' was edited without `invalidate`"
    return walk


def _new_walk(root: Operation) -> _Walk | _ModuleWalk:
    return _ModuleWalk(root) if isinstance(root, ModuleOp) and root.parent is None else _Walk(root)


@cache
def _is_one_of(op_class: type[Operation], classes: tuple[type[Operation], ...]) -> bool:
    # issubclass and isinstance are slow for abstract classes, such as those of operations, when the answer is no.
    return issubclass(op_class, classes)


def operations_in_block(block: Block) -> Iterator[Operation]:
    """Yield the operations of `block`, which must not change meanwhile, in a third of the time of `block.ops`."""
    op = block._first_op  # pyright: ignore[reportPrivateUsage]
    while op is not None:
        yield op
        op = op._next_op  # pyright: ignore[reportPrivateUsage]


def operations_at_top(module: ModuleOp) -> list[Operation]:
    """Return the operations of `module` itself, in a fifth of the time of `module.ops`."""
    block = module.regions[0].first_block
    return [] if block is None else [*operations_in_block(block)]


def _first_operations(op: Operation) -> list[Operation | None]:
    """Return the first operation of each block of `op`, in reverse order of blocks."""
    first: list[Operation | None] = []
    for region in op.regions[::-1]:
        block = region.last_block
        while block is not None:
            first.append(block.first_op)
            block = block.prev_block
    return first


def values_in(root: Operation) -> list[SSAValue]:
    """Return the values that the operations in `root` define: all results, then all block arguments."""
    values: list[SSAValue] = [result for op in operations(root) for result in op.results]
    nesting = nesting_operations(root)
    values += [arg for op in nesting for region in op.regions for block in region.blocks for arg in block.args]
    return values


def captured_values(op: Operation) -> list[SSAValue]:
    """Return the values defined outside `op` that its regions use, each once, in the order of first use."""
    own = {*values_in(op)}
    used = (operand for inner in operations(op) if inner is not op for operand in inner.operands)
    return list(dict.fromkeys(value for value in used if value not in own))
