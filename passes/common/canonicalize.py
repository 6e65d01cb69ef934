"""`canonicalize`: fold, simplify and remove dead operations."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import GreedyRewritePatternApplier
from xdsl.rewriter import InsertPoint
from xdsl.traits import ConstantLike, IsolatedFromAbove
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from sdy.dialect.canonicalization import PATTERNS, Patterns
from sdy.dialect.ops import ReshardOp
from sdy.ir.editing import AnalysisPreservingPass, SeededWalker, insert, replace
from sdy.ir.fast_access import has_trait
from sdy.ir.walking import invalidate, operations, operations_of, operations_with
from sdy.passes.common.reshard_reuse import ReuseReshard

_REUSE_RESHARD = Patterns((ReshardOp,), (ReuseReshard(),))
"""A pattern that also matches StableHLO, without a label."""


@dataclass(frozen=True)
class CanonicalizePass(AnalysisPreservingPass):
    """Apply the dialect's patterns, remove dead operations and merge equal constants, to a fixed point.

    Before::

        %0 = stablehlo.negate %arg0 : tensor<8xf32>
        %1 = sdy.reshard %arg0 <@mesh, [{}]> : tensor<8xf32>
        %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<8xf32>
        return %2 : tensor<8xf32>

    After::

        %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
        return %0 : tensor<8xf32>

    `enable_patterns` restricts the patterns to those with one of these labels, such as `sdy-reshard` for reshards of
    reshards and `sdy-collective` for collectives; `disable_patterns` excludes some. Constants move to the start of
    their function or isolated region.
    """

    name = "canonicalize"
    enable_patterns: tuple[str, ...] = ()
    disable_patterns: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        canonicalize(op, self.enable_patterns, self.disable_patterns)


def canonicalize(module: ModuleOp, enabled: Sequence[str] = (), disabled: Sequence[str] = ()) -> None:
    """Apply the groups of patterns in `enabled`, by default all, that are not in `disabled`."""
    _gather_constants(module)
    labelled = (*PATTERNS.items(), ("", _REUSE_RESHARD))
    groups = [group for label, group in labelled if (not enabled or label in enabled) and label not in disabled]
    roots = [root for group in groups for root in group.roots]
    if operations_of(module, *roots) or any(map(is_trivially_dead, operations(module)[1:])):
        applier = GreedyRewritePatternApplier([pattern for group in groups for pattern in group.patterns])
        SeededWalker(applier, seeds=lambda root: _candidates(root, roots)).rewrite_module(module)
        invalidate()


def _candidates(root: Operation, classes: Sequence[type[Operation]]) -> Iterator[Operation]:
    """Yield the operations in `root` that a pattern may match, of `classes` or dead, in reverse order."""
    invalidate()
    matched = set(map(id, operations_of(root, *classes)))
    for op in reversed(operations(root)[1:]):
        if id(op) in matched or is_trivially_dead(op):
            yield op


def _gather_constants(module: ModuleOp) -> None:
    """Merge equal constants in each isolated region, and move constants to its start."""
    first_of: dict[Hashable, Operation] = {}
    kept: set[Operation | None] = {None}
    for constant in operations_with(module, ConstantLike):
        block = _isolated_region(constant).blocks[0]
        key = (block, constant.dialect_name(), constant.get_attr_or_prop("value"), constant.results[0].type)
        first = first_of.setdefault(key, constant)
        if first is not constant:
            replace(constant, first.results)
            continue
        if constant.parent is not block or constant.prev_op not in kept:
            constant.detach()
            insert(constant, InsertPoint.at_start(block))
        kept.add(constant)


def _isolated_region(operation: Operation) -> Region:
    """Return the innermost region around `operation` that is isolated from above."""
    region = operation.parent_region()
    assert region is not None
    while (parent := region.parent) is not None and not has_trait(parent, IsolatedFromAbove):
        outer = parent.parent_region()
        if outer is None:
            break
        region = outer
    return region
