"""Propagation in a module that jax lowered, of which some operations speak of functions of Python."""

# jax does not declare all of its types.
# pyright: basic

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from sdy.dialect.meshes import named_meshes
from sdy.passes.common.inline import inline_calls
from sdy.passes.driver import propagate
from sdy.passes.execution.custom_partitioning import partition_customly
from sdy.passes.execution.device_mesh import Device
from sdy.passes.execution.inspected_shardings import answer_inspections
from sdy.passes.policy.policy import Policy


def propagate_lowered(
    module: ModuleOp, policy: Policy | None, devices: Sequence[Device], kept_alive: Sequence[Any]
) -> None:
    """Decide the sharding of every tensor of `module`, a program for `devices`, and tell the functions that ask.

    `kept_alive` are the objects that the lowering of `module` keeps alive, those functions among them. Raises what
    `sdy.propagate` raises.
    """
    inline_calls(module)  # arguments and results of functions would be split evenly only
    propagate(module, policy)
    if any(mesh.axes for mesh in named_meshes(module).values()):
        answer_inspections(module, devices, kept_alive)
        partition_customly(module, devices, kept_alive)
