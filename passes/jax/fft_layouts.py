"""Row-major layout constraints on Fourier transforms, which XLA's CPU backend requires but does not assign."""

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.ir import SSAValue, Use
from xdsl.rewriter import InsertPoint

from sdy.ir.editing import insert_for_other_uses, insert_for_use
from sdy.ir.walking import operations_of
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.custom_call import CustomCallOp
from sdy.stablehlo.linear_algebra import FftOp


def constrain_fft_layouts(module: ModuleOp) -> None:
    """Constrain the operand and the result of each `stablehlo.fft` to a row-major layout, in place.

    XLA's CPU backend propagates the layouts of neighboring operations to transforms, and fails at run time if the
    operand of one is not row-major. A collective along a minor dimension before or after the transform causes such a
    layout. After::

        %1 = stablehlo.custom_call @LayoutConstraint(%0) {operand_layouts = [dense<[1, 0]>], ...}
        %2 = stablehlo.fft %1, type = FFT, length = [8]
        %3 = stablehlo.custom_call @LayoutConstraint(%2) {operand_layouts = [dense<[1, 0]>], ...}
    """
    for op in operations_of(module, FftOp):
        insert_for_use(Use(op, 0), _row_major(op.operand), InsertPoint.before(op))
        insert_for_other_uses(op.result, _row_major(op.result), InsertPoint.after(op))


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
