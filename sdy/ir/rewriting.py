"""Pattern rewriting with a seeded worklist."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriteWalker


@dataclass(eq=False, repr=False)
class SeededWalker(PatternRewriteWalker):
    """xDSL's rewrite walker with a worklist that starts with the operations that `seeds` returns, the last one first.

    xDSL's own initialization visits all operations, and slows down with their nesting depth.
    """

    seeds: Callable[[Operation], Iterable[Operation]] = lambda root: root.walk()

    def _populate_worklist(self, op: Operation | Region | Block) -> None:
        root = op if isinstance(op, Operation) else op.parent
        assert isinstance(root, Operation)
        for seed in self.seeds(root):
            self._worklist.push(seed)
