"""The SDY dialect: sharding attributes, and the operations that constrain, mark and change shardings.

attributes.py      the values of `sdy/*.py` as attributes; their syntax is in the *_syntax.py files
ops.py             meshes, constraints, computations, data-flow edges
collectives.py     the collectives that reshards are lowered to
verifiers.py       verifiers, with MLIR's messages; the trait `Verified` of interfaces.py calls them
interfaces.py      interfaces through which shardings propagate through operations of any dialect
shardings.py       the sharding of a value, wherever it is stored
meshes.py          the meshes of a module
"""

from xdsl.ir import Dialect

from sdy.dialect.attributes import ATTRIBUTES
from sdy.dialect.collective_verifiers import COLLECTIVE_CHECKS
from sdy.dialect.collectives import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    CollectivePermuteOp,
    ReduceScatterOp,
    ReplicatedToUnreducedOp,
    ShardedToUnreducedOp,
)
from sdy.dialect.interfaces import CHECKS
from sdy.dialect.ops import (
    ConstantOp,
    DataFlowEdgeOp,
    FuncDataFlowEdgeOp,
    ManualComputationOp,
    MeshOp,
    NamedComputationOp,
    PropagationBarrierOp,
    ReshardOp,
    ReturnOp,
    ShardingConstraintOp,
    ShardingGroupOp,
)
from sdy.dialect.verifiers import OPERATION_CHECKS

CHECKS.update(COLLECTIVE_CHECKS | OPERATION_CHECKS)

SDY = Dialect(
    "sdy",
    [
        AllGatherOp,
        AllReduceOp,
        AllSliceOp,
        AllToAllOp,
        CollectivePermuteOp,
        ConstantOp,
        DataFlowEdgeOp,
        FuncDataFlowEdgeOp,
        ManualComputationOp,
        MeshOp,
        NamedComputationOp,
        PropagationBarrierOp,
        ReduceScatterOp,
        ReplicatedToUnreducedOp,
        ReshardOp,
        ReturnOp,
        ShardedToUnreducedOp,
        ShardingConstraintOp,
        ShardingGroupOp,
    ],
    ATTRIBUTES,
)
