"""The dialect `norm`: syntax, sharding rule and interpretation of its operation.

    %y = norm.rms %x, %weight : tensor<16x64xf32>, tensor<64xf32>

Rows of `x` are scaled to a root mean square of one, then by `weight`. In a partitioned program, each device computes
the operation on its own rows: the sharding rule replicates the columns, and blocks propagation along them.
"""

from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import IRDLOperation, VarConstraint, base, irdl_op_definition, operand_def, result_def

from sdy.interpreter import registry as interpreter
from sdy.rules import annotate


@irdl_op_definition
class RmsOp(IRDLOperation):
    """RMS normalization of rows, scaled by a weight for each column."""

    T: ClassVar = VarConstraint("T", base(TensorType[Attribute]))

    name = "norm.rms"
    x = operand_def(T)
    weight = operand_def(TensorType[Attribute])
    result = result_def(T)
    assembly_format = "$x `,` $weight attr-dict `:` type($x) `,` type($weight)"


def load() -> Dialect:
    """Register the operation and return the dialect. sdy calls this once, at the first operation `norm.*`."""
    annotate("norm.rms", "... i, i -> ... i need_replication={i} blocked_propagation={i}")
    interpreter.register("norm.rms")(rms)
    return Dialect("norm", [RmsOp], [])


def rms(op: RmsOp, x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Interpret the operation on `x` of shape (..., columns) and `weight` of shape (columns,)."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True)) * weight
