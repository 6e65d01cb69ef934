"""The dialect `norm`: syntax, sharding rule and meaning of its operation.

    %y = norm.rms %x, %weight : tensor<16x64xf32>, tensor<64xf32>

Rows of `x` are scaled to a root mean square of one, then by `weight`. Of a program that is split over devices, each
computes the operation as it stands, on its own rows: the rule says that a row is needed whole, and that no sharding is
taken along it from one tensor to another.
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
    """Rows scaled to a root mean square of one, then by a weight for each column."""

    T: ClassVar = VarConstraint("T", base(TensorType[Attribute]))

    name = "norm.rms"
    x = operand_def(T)
    weight = operand_def(TensorType[Attribute])
    result = result_def(T)
    assembly_format = "$x `,` $weight attr-dict `:` type($x) `,` type($weight)"


def load() -> Dialect:
    """The dialect; sdy calls this once, when it first meets an operation called `norm.` something."""
    annotate("norm.rms", "... i, i -> ... i need_replication={i} blocked_propagation={i}")
    interpreter.register("norm.rms")(rms)
    return Dialect("norm", [RmsOp], [])


def rms(op: RmsOp, x: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the operation computes of `x`, of shape (..., columns), and `weight`, of shape (columns)."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True)) * weight
