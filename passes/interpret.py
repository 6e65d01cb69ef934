"""Interpreter for unpartitioned and partitioned modules on NumPy arrays, without a compiler.

All devices of a partitioned module run in this process. Each gets its shards of the arguments, by the shardings of the
main function, and the shards of the results are assembled.
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
from sdy.interpreter.manual import assemble, shard
from sdy.interpreter.values import Array
from sdy.passes.common.call_graph import main_function
from sdy.passes.driver import check_is_spmd
from sdy.passes.jax.device_mesh import PlacedSharding
from sdy.passes.jax.program.interface import ArrayPort, Interface
from sdy.passes.jax.program.plain_module import without_shardings
from sdy.passes.spmd.local_module import is_local


def interpret(module: ModuleOp, *arrays: Any) -> tuple[Array, ...]:
    """Run the main function of `module` on NumPy arrays.

    A partitioned module runs on all devices of its mesh. Any other module runs on one device and its shardings are
    ignored, except that manual computations run on all devices of their mesh.

    Args:
        module: The module.
        *arrays: The arguments, as full (unsharded) arrays.

    Returns:
        The results, as full arrays.

    Raises:
        TypeError: The number or the element type of the arguments is wrong, or `module` is not a module.
        ValueError: The shape of an argument is wrong.
        DiagnosticError: An operation cannot be interpreted.
    """
    adopt(module)
    check_is_spmd(module)
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
    # Copies: a result may share memory with an argument.
    return tuple(np.array(_assembled(parts, placed)) for parts, placed in zip(results, interface.outputs, strict=True))


def argument_ports(module: ModuleOp) -> list[ArrayPort]:
    """Return the arrays that `interpret` expects for `module`.

    Raises:
        DiagnosticError: The type of an argument has no equivalent array.
    """
    return _interface(module)[0].arguments()


def _interface(module: ModuleOp) -> tuple[Interface, int]:
    """Return the interface of the main function, and the number of devices that run it."""
    if not is_local(module):
        return Interface.without_shardings(module), 1
    return Interface.of(module), max((mesh.size for mesh in named_meshes(module).values()), default=1)


def _checked(port: ArrayPort, argument: Any) -> Array:
    return np.asarray(port.check(argument if np.isscalar(argument) else np.asarray(argument)))


def _assembled(parts: Sequence[Array], placed: PlacedSharding | None) -> Array:
    return parts[0] if placed is None else assemble(dict(enumerate(parts)), placed.sharding.dim_axes, placed.mesh)
