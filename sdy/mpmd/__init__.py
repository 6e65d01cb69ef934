"""The MPMD dialect of Shardy: a program as several programs, each on a mesh of its own.

attributes.py        topologies, origins, reductions; their syntax is in attribute_syntax.py
mesh_tensor.py       the type of tensors on a mesh of the topology
ops.py               the operations; directives.py has their custom syntax
data_flow.py         propagation of shardings through fragments and loops
verifiers.py         verifiers, with MLIR's messages
canonicalization.py  patterns of `canonicalize`
topology.py          meshes and callees of a program
"""

from xdsl.ir import Dialect

from sdy.dialect.canonicalization import PATTERNS
from sdy.dialect.interfaces import CHECKS
from sdy.mpmd.attributes import ATTRIBUTES
from sdy.mpmd.canonicalization import MPMD_PATTERNS
from sdy.mpmd.mesh_tensor import MeshTensorType
from sdy.mpmd.ops import (
    AssignOp,
    BroadcastOp,
    CallOp,
    ForOp,
    FragmentCallOp,
    FragmentOp,
    NamedComputationOp,
    NamedTensorOp,
    ReduceOp,
    ReturnOp,
    TransferOp,
    UnassignOp,
)
from sdy.mpmd.verifiers import MPMD_CHECKS

CHECKS.update(MPMD_CHECKS)
PATTERNS["mpmd"] = MPMD_PATTERNS

MPMD = Dialect(
    "mpmd",
    [
        AssignOp,
        BroadcastOp,
        CallOp,
        ForOp,
        FragmentCallOp,
        FragmentOp,
        NamedComputationOp,
        NamedTensorOp,
        ReduceOp,
        ReturnOp,
        TransferOp,
        UnassignOp,
    ],
    [*ATTRIBUTES, MeshTensorType],
)
