"""Canonicalization patterns of manual computations."""

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from sdy.dialect.attributes import TensorShardingPerValueAttr
from sdy.dialect.meshes import common_mesh
from sdy.dialect.ops import ManualComputationOp


class RemoveUnusedInputs(RewritePattern):
    """Remove operands that the body does not use."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ManualComputationOp, rewriter: PatternRewriter) -> None:
        """Remove unused block arguments, their operands and their shardings."""
        arguments = op.body.block.args
        used = [index for index, argument in enumerate(arguments) if argument.first_use is not None]
        if len(used) == len(arguments):
            return
        for argument in [argument for argument in arguments if argument.first_use is None]:
            rewriter.erase_block_argument(argument)
        shardings = op.in_shardings.data
        op.properties["in_shardings"] = TensorShardingPerValueAttr(tuple(shardings[index] for index in used))
        op.operands = [op.operands[index] for index in used]
        rewriter.notify_op_modified(op)


class InlineIdleManualComputation(RewritePattern):
    """Inline a manual computation whose manual axes have size 1; erase one without operands, results and body."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ManualComputationOp, rewriter: PatternRewriter) -> None:
        """Inline the body."""
        shardings = (*op.in_shardings.data, *op.out_shardings.data)
        block = op.body.block
        terminator = block.last_op
        assert terminator is not None
        if not shardings and block.first_op is terminator:
            rewriter.erase(op)
            return
        mesh = common_mesh(shardings, op)
        if mesh is not None and any(mesh.axis_size(name) != 1 for name in op.manual_axes.data):
            return
        if shardings and mesh is None:
            return
        results = terminator.operands
        rewriter.inline_block(block, InsertPoint.before(op), op.operands)
        rewriter.replace(op, (), results)
        rewriter.erase(terminator)
