"""All operations in an operation, quickly.

Most passes look for the few operations that concern them, and to find these is most of what such a pass costs: the
operations of a large module lie all over memory. A list takes half the time of `Operation.walk`, which resumes a
generator for each region around each operation; it stays as it is while the module is edited; and the operations may be
nested as deeply as they like.

Few passes move an operation, and what one has found, the next need not look for. In `cached_walks()`, answers are kept
until `invalidate()`, which whoever puts an operation somewhere or takes one away has to call, as `sdy.ir.editing` does.
Around those who do not, there is `uncached_walks()`. In `checked_walks()`, in which all tests run, each answer that was
kept is compared with a new one, so that no edit is forgotten unseen.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from itertools import chain
from typing import TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.traits import OpTrait

from sdy.ir.traits import trait_of_class

OperationT = TypeVar("OperationT", bound=Operation)


def operations(root: Operation) -> Sequence[Operation]:
    """`root` and the operations in it, in the order of the text: each before what is in it."""
    return _find(root).outside_in


def nesting_operations(root: Operation) -> Sequence[Operation]:
    """The operations in `root`, itself included, that have regions, in the order of the text."""
    return _find(root).nesting


def operations_inside_out(root: Operation) -> Sequence[Operation]:
    """The operations in `root`, and `root`: each after what is in it."""
    return _find(root).inside_out


def operations_of(root: Operation, *classes: type[OperationT]) -> Sequence[OperationT]:
    """The operations of these classes in `root`, itself included, in the order of the text."""
    found = _find(root)
    return cast(Sequence[OperationT], found.of([kind for kind in found.classes if _is_one_of(kind, classes)]))


def operations_with(root: Operation, *traits: type[OpTrait]) -> Sequence[Operation]:
    """The operations in `root`, itself included, that have one of these traits, in the order of the text."""
    found = _find(root)
    return found.of([kind for kind in found.classes if any(trait_of_class(kind, trait) for trait in traits)])


def innermost_first(ops: Iterable[OperationT]) -> list[OperationT]:
    """`ops`, which are in the order of the text, each after those that are in it."""
    ordered: list[OperationT] = []
    around: list[OperationT] = []
    for op in ops:
        while around and not around[-1].is_ancestor(op):
            ordered.append(around.pop())
        around.append(op)
    return ordered + around[::-1]


def attributes_in(root: Operation) -> Iterable[Attribute]:
    """The properties and attributes of the operations in `root`, itself included; each object once."""
    found: dict[int, Attribute] = {}
    for op in operations(root):
        if properties := op.properties:
            for attribute in properties.values():
                found[id(attribute)] = attribute
        if attributes := op.attributes:
            for attribute in attributes.values():
                found[id(attribute)] = attribute
    return found.values()


@contextmanager
def cached_walks() -> Generator[None]:
    """Keep what is found in the `with` block until someone calls `invalidate`, or the outermost such block ends."""
    token = _kept.set({} if (kept := _kept.get()) is None else kept)
    try:
        yield
    finally:
        _kept.reset(token)


@contextmanager
def uncached_walks() -> Generator[None]:
    """Keep nothing in the `with` block, which may edit operations without a word."""
    invalidate()
    with _nothing_kept():
        yield


@contextmanager
def _nothing_kept() -> Generator[None]:
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


@contextmanager
def checked_walks() -> Generator[None]:
    """Raise AssertionError in the `with` block wherever an answer that was kept is no longer right."""
    token = _checked.set(True)
    try:
        yield
    finally:
        _checked.reset(token)


def invalidate(around: Operation | None = None) -> None:
    """Say that operations have come, gone or moved in `around`, or somewhere; their attributes do not matter."""
    kept = _kept.get()
    if not kept:
        return
    if around is None:
        kept.clear()
    while around is not None:
        kept.pop(id(around), None)
        block = around.parent
        around = block and block.parent and block.parent.parent


class _Found:
    """What there is in `root`. Written to be fast: all that has to be known of an operation is asked at once.

    An operation that was not looked at for a while is not in the processor's cache. To ask for its class then, or just
    to put it into another list, takes several times as long as all else here.
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
                # `next_op` is a call, which costs as much as all else here.
                op = op._next_op  # pyright: ignore[reportPrivateUsage]

    @property
    def classes(self) -> Set[type[Operation]]:
        return self.by_class.keys()

    @cached_property
    def inside_out(self) -> list[Operation]:
        return _inside_out(self.root)

    def of(self, classes: Sequence[type[Operation]]) -> Sequence[Operation]:
        """The operations of exactly these classes, which are among those that there are."""
        if len(classes) < 2:
            return self.by_class[classes[0]] if classes else ()
        return [op for op in self.outside_in if op.__class__ in classes]


class _FoundInModule:
    """What there is in the module `root`: what there is in each of its functions, most of which stay the same."""

    def __init__(self, root: ModuleOp):
        self.root = root
        self.parts = [_find(op) for op in root.ops]
        self._answers: dict[tuple[type[Operation], ...], Sequence[Operation]] = {}

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
        """The operations of exactly these classes, which are among those that there are."""
        asked = tuple(classes)
        if asked not in self._answers:
            there = ([kind for kind in classes if kind in part.classes] for part in self.parts)
            found = chain.from_iterable(part.of(kinds) for part, kinds in zip(self.parts, there, strict=True))
            self._answers[asked] = [self.root, *found] if ModuleOp in classes else [*found]
        return self._answers[asked]


def _inside_out(root: Operation) -> list[Operation]:
    found = [root]
    pending = [block.last_op for region in root.regions for block in region.blocks]
    while pending:
        op = pending.pop()
        while op is not None:
            found.append(op)
            if op.regions:
                pending.append(op.prev_op)
                pending += [block.last_op for region in op.regions for block in region.blocks]
                break
            op = op.prev_op
    found.reverse()
    return found


_kept: ContextVar[dict[int, "_Found | _FoundInModule"] | None] = ContextVar("kept", default=None)
"""By the address of the root in which it was found; None outside of `cached_walks()`."""

_checked: ContextVar[bool] = ContextVar("checked", default=False)
"""Whether what was kept is compared with what there is."""


def _find(root: Operation) -> _Found | _FoundInModule:
    kept = _kept.get()
    if kept is None:
        return _find_anew(root)
    found = kept.get(id(root))
    if found is None:
        found = kept[id(root)] = _find_anew(root)
    elif _checked.get():
        with _nothing_kept():
            assert found.outside_in == _find_anew(root).outside_in, f"'{root.name}' was edited without `invalidate`"
    return found


def _find_anew(root: Operation) -> _Found | _FoundInModule:
    return _FoundInModule(root) if isinstance(root, ModuleOp) and root.parent is None else _Found(root)


@cache
def _is_one_of(op_class: type[Operation], classes: tuple[type[Operation], ...]) -> bool:
    # Operations' classes are abstract ones, with which issubclass and isinstance are slow to say no.
    return issubclass(op_class, classes)


def operations_in_block(block: Block) -> Iterator[Operation]:
    """The operations of `block`, which are not changed meanwhile, in a third of the time that `block.ops` takes."""
    op = block._first_op  # pyright: ignore[reportPrivateUsage]
    while op is not None:
        yield op
        op = op._next_op  # pyright: ignore[reportPrivateUsage]


def operations_at_top(module: ModuleOp) -> list[Operation]:
    """The operations of `module` itself, in a fifth of the time that `module.ops` takes: passes ask again and again."""
    block = module.regions[0].first_block
    return [] if block is None else [*operations_in_block(block)]


def _first_operations(op: Operation) -> list[Operation | None]:
    """The first operation of each block of `op`, those of the last block first."""
    found: list[Operation | None] = []
    for region in op.regions[::-1]:
        block = region.last_block
        while block is not None:
            found.append(block.first_op)
            block = block.prev_block
    return found
