"""Canonicalization patterns of the MPMD dialect."""

from xdsl.ir import BlockArgument
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from sdy.dialect.canonicalization import Patterns
from sdy.mpmd.mesh_tensor import MeshTensorType
from sdy.mpmd.ops import BroadcastOp, FragmentOp, ReduceOp, TransferOp


class IdentityTransfer(RewritePattern):
    """Erase a transfer between equal types, and skip the first of two transfers within one mesh."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransferOp, rewriter: PatternRewriter) -> None:
        """Use the operand, or the operand of the transfer before."""
        if op.tensor.type == op.result.type:
            rewriter.replace(op, (), (op.tensor,))
            return
        inner = op.tensor.owner
        if not isinstance(inner, TransferOp):
            return
        types = (inner.tensor.type, inner.result.type, op.result.type)
        if len({type_.mesh for type_ in types if isinstance(type_, MeshTensorType)}) == 1:
            new = TransferOp(inner.tensor, op.result.type)
            new.location = op.location
            rewriter.replace(op, new)


class BroadcastOfBroadcast(RewritePattern):
    """Broadcast a value once."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, rewriter: PatternRewriter) -> None:
        """Use the broadcast before."""
        if isinstance(inner := op.tensor.owner, BroadcastOp):
            rewriter.replace(op, (), (inner.result,))


class ReduceOfReduce(RewritePattern):
    """Erase a reduction of a single reduced value, if it is the identity or of the same kind."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        """Use the reduction before."""
        inner = op.tensors[0].owner if op.tensors else None
        if isinstance(inner, ReduceOp) and op.reduction.data in ("none", inner.reduction.data):
            rewriter.replace(op, (), (inner.result,))


class ForwardFragmentArguments(RewritePattern):
    """Use an operand that a fragment only returns directly, instead of the fragment's result."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: FragmentOp, rewriter: PatternRewriter) -> None:
        """Replace results by the operands of the same type that they return."""
        terminator = op.body.block.last_op
        assert terminator is not None
        for returned, result in zip(terminator.operands, op.results, strict=True):
            if isinstance(returned, BlockArgument) and result.first_use is not None:
                operand = op.operands[returned.index]
                if operand.type == result.type:
                    rewriter.replace_all_uses_with(result, operand)


MPMD_PATTERNS = Patterns(
    (TransferOp, BroadcastOp, ReduceOp, FragmentOp),
    (IdentityTransfer(), BroadcastOfBroadcast(), ReduceOfReduce(), ForwardFragmentArguments()),
)
"""All patterns of the dialect."""
