"""The rows of a sharded batch are shuffled in a step, so that each device gathers the whole batch.

A permutation that a step computes, such as for mixup or for minibatches, reads rows of all devices. Rows that are
permuted among those of a device, or before the batch is put on the devices, need no communication.

Before::

    images = images[jax.random.permutation(key, len(images))]  # images are sharded as P("data")

After::

    rows = jax.random.permutation(key, len(images) // 8)
    images = images.reshape(8, -1, *images.shape[1:])[:, rows].reshape(images.shape)
"""

from collections.abc import Iterator

from xdsl.ir import BlockArgument

from sdy.dialect.axis_syntax import axes_text
from sdy.passes.account.causes import Purpose
from sdy.passes.account.lint.candidates import tree
from sdy.passes.account.lint.edits import value_dims
from sdy.passes.account.lint.findings import GivenBy, Suspicion
from sdy.passes.account.lint.program import LintedProgram
from sdy.passes.account.lint.rules.batch_not_sharded import data_arguments
from sdy.passes.common.properties import num_bytes
from sdy.stablehlo.gather import GatherOp


def check(program: LintedProgram) -> Iterator[Suspicion]:
    """Find gathers of as many rows as a sharded batch has, at indices that the program computes."""
    gathers = [
        (cause.operation, alike)
        for cause, alike in program.collectives_by_cause.items()
        if cause.purpose is Purpose.RESHARD and isinstance(cause.operation, GatherOp)
        if cause.tensor is cause.operation.operand
    ]
    data = {argument for each in data_arguments(program).values() for argument in each} if gathers else ()
    for op, alike in gathers:
        batch = next((at for at in program.use_def.trace(op.operand) if at in data), None)
        is_permuted = num_bytes(op.operand.type) == num_bytes(op.result.type)
        if not isinstance(batch, BlockArgument) or not is_permuted or program.is_argument(op.start_indices):
            continue
        axes = value_dims(op.operand)[0]
        if axes and all(each.kind == "all-gather" and each.axes == tuple(axis.name for axis in axes) for each in alike):
            yield Suspicion(
                op,
                f"the rows of {program.called(batch)}, {op.operand.type}, which {axes_text(axes)} shards, are read in "
                "an order that the step computes: each device gathers all of them",
                f"shuffle the rows of each device among themselves, or {tree(batch) or 'the batch'} before it is put "
                "on the devices",
                [GivenBy(op.operand, axes)],
                received=sum(each.bytes for each in alike),
                collectives=[each.op for each in alike],
            )
