"""`sdy-constrain-fft-layouts`: constrain Fourier transforms to row-major layouts, which XLA's CPU backend requires."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.ir import SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.ir.walking import operations_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.linear_algebra import FftOp


@dataclass(frozen=True)
class ConstrainFftLayoutsPass(ModulePass):
    """Constrain the operand and the result of each `stablehlo.fft` to a row-major layout.

    XLA's CPU backend propagates the layouts of neighboring operations to transforms, and fails at run time if the
    operand of one is not row-major. A collective along a minor dimension before or after the transform causes such a
    layout.

    Before::

        %2 = stablehlo.fft %0, type = FFT, length = [8]

    After::

        %1 = stablehlo.custom_call @LayoutConstraint(%0) {operand_layouts = [dense<[1, 0]>], ...}
        %2 = stablehlo.fft %1, type = FFT, length = [8]
        %3 = stablehlo.custom_call @LayoutConstraint(%2) {operand_layouts = [dense<[1, 0]>], ...}
    """

    name = "sdy-constrain-fft-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for transform in operations_of(op, FftOp):
            insert_for_use(Use(transform, 0), _row_major(transform.operand), InsertPoint.before(transform))
            insert_for_other_uses(transform.result, _row_major(transform.result), InsertPoint.after(transform))


def _row_major(value: SSAValue) -> CustomCallOp:
    type_ = tensor_type(value)
    minor_to_major = [*reversed(range(type_.get_num_dims()))]
    layout = DenseIntOrFPElementsAttr.from_list(TensorType(IndexType(), (len(minor_to_major),)), minor_to_major)
    layouts = ArrayAttr([layout])
    properties = {
        "call_target_name": StringAttr("LayoutConstraint"),
        "operand_layouts": layouts,
        "result_layouts": layouts,
    }
    return CustomCallOp.create(operands=[value], properties=properties, result_types=[type_])
