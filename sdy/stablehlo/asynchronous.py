"""Asynchronous operations: `async_start` returns a future, `async_done` waits for its result."""

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, region_def, result_def, traits_def, var_operand_def
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from sdy.diagnostics import quoted
from sdy.stablehlo.checks.inference import InferredResults
from sdy.stablehlo.checks.shape_checks import tensor_type
from sdy.stablehlo.collectives import AllGatherOp, AllToAllOp, CollectiveBroadcastOp, CollectivePermuteOp
from sdy.stablehlo.reducing_collectives import AllReduceOp, CollectiveReduceOp, ReduceScatterOp
from sdy.stablehlo.slicing import DynamicSliceOp, DynamicUpdateSliceOp, SliceOp
from sdy.stablehlo.syntax.definition import define
from sdy.stablehlo.types.special import FutureType
from sdy.stablehlo.types.tensor_types import FUTURE, TENSOR

STARTABLE = (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectiveBroadcastOp,
    CollectivePermuteOp,
    CollectiveReduceOp,
    ReduceScatterOp,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    SliceOp,
)
"""The operations that may run asynchronously."""


@define
class AsyncStartOp(InferredResults):
    """Start the operation in the body, which takes the operands as arguments."""

    name = "stablehlo.async_start"
    operands_ = var_operand_def(TENSOR)
    result = result_def(FUTURE)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    def infer_types(self) -> Sequence[Attribute]:
        """Return a future of the body's result."""
        name = f"'{self.name}' op"
        ops = list(self.body.block.ops)
        if len(ops) != 2:
            raise VerifyException(f"{name} region must contain exactly one operation and a return")
        started, terminator = ops
        if not isinstance(started, STARTABLE):
            raise VerifyException(f"{name} region must contain a collective or slice operation")
        arguments = self.body.block.arg_types
        if len(self.operands) != len(arguments):
            raise VerifyException(
                f"{name} number of operands ({len(self.operands)}) must match number of region arguments "
                f"({len(arguments)})"
            )
        for index, (operand, argument) in enumerate(zip(self.operand_types, arguments, strict=True)):
            if operand != argument:
                raise VerifyException(
                    f"{name} operand type {quoted([operand])} at index {index} must match region argument type "
                    f"{quoted([argument])}"
                )
        if len(terminator.operands) != 1:
            raise VerifyException(f"{name} region must return exactly one value, but got {len(terminator.operands)}")
        (returned,) = terminator.operands
        if not isinstance(returned.type, TensorType):
            raise VerifyException(f"future element type must be a ranked tensor, but got '{returned.type}'")
        return [FutureType((tensor_type(returned),))]


@define
class AsyncDoneOp(InferredResults):
    """Wait for an asynchronous operation and return its result."""

    name = "stablehlo.async_done"
    operand = operand_def(FUTURE)
    result = result_def(TENSOR)

    def infer_types(self) -> Sequence[Attribute]:
        """Return the type inside the future."""
        future = self.operand.type
        assert isinstance(future, FutureType)
        if len(future.data) != 1:
            raise VerifyException(
                f"'{self.name}' op future must have exactly one type parameter, but got {len(future.data)}"
            )
        return future.data
