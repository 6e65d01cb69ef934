"""Tensor sharding as a compiler you can read.

    module = sdy.parse(text)            # or sdy.from_jax(jax.jit(step), *arguments)
    sdy.propagate(module)               # every tensor has a sharding
    print(sdy.format(module))
    print(sdy.explain(module, value))   # why one of them has its sharding
    program = sdy.compile(module)       # runs on the mesh's devices
    results = program(*arrays)

This file is only the face: it names what lives elsewhere, and loads it when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdy.axes import AxisRef as AxisRef
    from sdy.builder import Builder as Builder
    from sdy.diagnostics import DiagnosticError as DiagnosticError
    from sdy.dialect.shardings import get_sharding as get_sharding
    from sdy.mesh import Mesh as Mesh
    from sdy.passes.driver import partition as partition
    from sdy.passes.driver import propagate as propagate
    from sdy.passes.execution.compile import compile as compile
    from sdy.passes.execution.from_jax import from_jax as from_jax
    from sdy.passes.execution.interpreter.interpret import interpret as interpret
