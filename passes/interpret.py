"""A module run on NumPy arrays, whole or partitioned, without a compiler.

The devices of a partitioned module are run together in this process. Each gets its shards of the arguments, as the
shardings of the main function say, and their shards of the results are put together again.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import named_meshes
from sdy.dialect.ops import ManualComputationOp, MeshOp, ReturnOp
from sdy.foreign_dialects import adopt
from sdy.interpreter.grid import DeviceId, Grid
from sdy.interpreter.machine import Machine, run_body
from sdy.interpreter.shards import shard, together
from sdy.interpreter.values import Array
from sdy.passes.common.call_graph import main_function
from sdy.passes.jax.device_mesh import PlacedSharding
from sdy.passes.jax.interface import ArrayPort, Interface
from sdy.passes.jax.plain_module import without_shardings
from sdy.passes.spmd.local_module import is_local


def interpret(module: ModuleOp, *arrays: Any) -> tuple[Array, ...]:
    """The results of the main function of `module`, as NumPy arrays; arguments and results are whole tensors.

    A partitioned module is run on all devices of its mesh; any other as if it had no shardings, where it does not say
    itself what each device does. Raises TypeError or
    ValueError for arguments that do not fit, and DiagnosticError at an operation that cannot be interpreted.
    """
    adopt(module)
    interface, count = _interface(module)
    ports = interface.arguments()
    if len(arrays) != len(ports):
        raise TypeError(f"the program takes {len(ports)} arguments, not {len(arrays)}")
    checked = [_checked(port, array) for port, array in zip(ports, arrays, strict=True)]
    plain = without_shardings(module, MeshOp, ManualComputationOp, ReturnOp)
    main = main_function(plain)
    programs = {
        DeviceId(0, device): partial(
            run_body,
            function=main,
            args=tuple(
                array if placed is None else shard(array, placed.sharding.dim_axes, placed.mesh, device)
                for array, placed in zip(checked, interface.inputs, strict=True)
            ),
        )
        for device in range(count)
    }
    results = zip(*Machine(plain).run(Grid(1, count), programs).values(), strict=True)
    # What a program hands on is not to be changed through what comes out of it.
    return tuple(np.array(_whole(parts, placed)) for parts, placed in zip(results, interface.outputs, strict=True))


def taken(module: ModuleOp) -> list[ArrayPort]:
    """The arrays that `interpret` takes for `module`. Raises DiagnosticError for an argument that no array can be."""
    return _interface(module)[0].arguments()


def _interface(module: ModuleOp) -> tuple[Interface, int]:
    """What the main function takes and gives, and the number of devices that run it together."""
    if not is_local(module):
        return Interface.without_shardings(module), 1
    return Interface.of(module), max((mesh.size for mesh in named_meshes(module).values()), default=1)


def _checked(port: ArrayPort, argument: Any) -> Array:
    return np.asarray(port.check(argument if np.isscalar(argument) else np.asarray(argument)))


def _whole(parts: Sequence[Array], placed: PlacedSharding | None) -> Array:
    return parts[0] if placed is None else together(dict(enumerate(parts)), placed.sharding.dim_axes, placed.mesh)
