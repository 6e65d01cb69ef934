"""Patterns applied where they can apply."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriteWalker


@dataclass(eq=False, repr=False)
class SeededWalker(PatternRewriteWalker):
    """xDSL's walker, which begins with the operations that `seeds` finds instead of looking at all, the first last.

    Its own way of looking for operations takes the longer the deeper these are nested.
    """

    seeds: Callable[[Operation], Iterable[Operation]] = lambda root: root.walk()

    def _populate_worklist(self, op: Operation | Region | Block) -> None:
        root = op if isinstance(op, Operation) else op.parent
        assert isinstance(root, Operation)
        for seed in self.seeds(root):
            self._worklist.push(seed)
