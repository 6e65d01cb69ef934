"""The shardings of a program as trees of `PartitionSpec`s."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jax.sharding import PartitionSpec
from xdsl.dialects.builtin import ModuleOp

from sdy.passes.layouts import PartitionedLayout
from sdy.passes.python.device_axes import DeviceAxes
from sdy.passes.python_layouts.paths import Keys
from sdy.passes.python_layouts.received import ReceivedBytes, received_bytes


@dataclass(frozen=True)
class ConstrainedResult:
    """The result of an operation with a sharding of its own."""

    name: str
    """The operation and its source line, as `stablehlo.add at model.py:3:5`."""
    spec: PartitionSpec


@dataclass(frozen=True, repr=False)
class LayoutSpecs:
    """The shardings of a program.

    Attributes:
        axes: The axes of the mesh. If a sharding uses a part of an axis, the axis is cut: `x` into `x_0` and
            `x_1`.
        arguments: The tuple of the arguments' trees, with a `PartitionSpec` for each array; keyword arguments are in a
            dictionary after them. The program of a parsed module has a dictionary of paths instead.
        results: The tree of the results, or a dictionary of paths.
        constraints: The shardings of results of operations that `sdy.auto` chose.
    """

    name: str
    axes: DeviceAxes
    arguments: Any
    results: Any
    constraints: tuple[ConstrainedResult, ...]
    argument_names: tuple[str, ...]
    argument_specs: tuple[tuple[Keys, PartitionSpec], ...]
    result_specs: tuple[tuple[Keys, PartitionSpec], ...]
    _module: ModuleOp
    _layout: PartitionedLayout

    @cached_property
    def received(self) -> ReceivedBytes | None:
        """The bytes that a device receives with these shardings alone under `jax.jit`, and under sdy.

        The first access compiles the program twice. None if there are fewer devices than the mesh has.
        """
        return received_bytes(self._module, self._layout)
