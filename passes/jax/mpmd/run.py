"""`sdy.mpmd.run`: programs that Shardy's MPMD compiler has partitioned, without Pathways."""

from collections.abc import Mapping
from typing import Any

import jax

from sdy.passes.jax.mpmd.pipeline import Pipeline
from sdy.passes.mpmd.programs import partitioned_module


def run(program: Any, meshes: Mapping[str, jax.sharding.Mesh] | None = None) -> Pipeline:
    """Compile a partitioned MPMD program: each fragment for its mesh, by sdy, in threads.

    Args:
        program: the program after the phase PARTITION of Shardy's MPMD compiler, as a module, as a module of jaxlib's
            bindings or as text; or an `MpmdLowered` of Shardy's front end, which has it.
        meshes: the jax mesh of each mesh of the topology, by name. By default those of an `MpmdLowered`; otherwise
            consecutive devices of `jax.devices()`, in the order of the topology.

    Returns:
        A function of global arrays, the flat arguments and results of the module.

    Raises:
        DiagnosticError: the program is invalid or not partitioned, or there are too few devices.

    Example:
        ```python
        step = sdy.mpmd.run(lowered)        # of shardy's mpmd.jit(...).lower(...)
        loss, *weights = step(*weights, *batch)
        ```
    """
    return Pipeline(partitioned_module(program), getattr(program, "topology", None) if meshes is None else meshes)
