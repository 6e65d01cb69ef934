"""The MPMD dialect of Shardy: a program as several programs, each on a mesh of its own.

attributes.py        topologies, origins, reductions; their syntax is in attribute_syntax.py
mesh_tensor.py       the type of tensors on a mesh of the topology
ops.py               the operations, and their data-flow edges; directives.py has their custom syntax
verifiers.py         verifiers, with MLIR's messages
canonicalization.py  patterns of `canonicalize`
topology.py          meshes and callees of a program

`sdy.mpmd.stages` divides a mesh among the stages of a jax function; `sdy.mpmd.run` compiles a partitioned program into
a function on jax arrays, and `sdy.mpmd.plan` predicts its cost; `sdy.mpmd.predict` simulates a schedule.
"""

from typing import TYPE_CHECKING

from xdsl.ir import Dialect

from sdy.dialect.canonicalization import PATTERNS
from sdy.dialect.interfaces import CHECKS
from sdy.lazy_names import lazy_names as _lazy_names
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

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Pipeline: type[Any]
    StageCost: Any
    circular: Callable[..., Any]
    compare: Callable[..., Any]
    plan: Callable[..., Any]
    predict: Callable[..., Any]
    run: Callable[..., Any]
    stages: Callable[..., Any]

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

_PIPELINES = {
    "Pipeline": "sdy.passes.jax.mpmd.pipeline",
    "StageCost": "sdy.passes.mpmd.simulation",
    "circular": "sdy.passes.jax.mpmd.circular",
    "compare": "sdy.passes.mpmd.prediction",
    "plan": "sdy.passes.mpmd.plan",
    "predict": "sdy.passes.mpmd.prediction",
    "run": "sdy.passes.jax.mpmd.run",
    "stages": "sdy.passes.jax.mpmd.front_end",
}

__getattr__, __dir__ = _lazy_names("sdy.mpmd", globals(), _PIPELINES)
