"""The interface of a program: its arguments and results as arrays over devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, cast

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from sdy.array_types import array_type
from sdy.diagnostics import error
from sdy.dialect.meshes import mesh_of
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import find_main_function
from sdy.passes.common.donations import is_donated
from sdy.passes.common.immutable import OfThisProcess
from sdy.passes.jax.device_mesh import DeviceMesh, PlacedSharding
from sdy.passes.spmd.local_module import is_local
from sdy.sharding import TensorSharding

Array: TypeAlias = "jax.Array | np.ndarray[Any, np.dtype[Any]]"
Argument: TypeAlias = "Array | np.generic | bool | int | float | complex"


@dataclass(frozen=True)
class ArrayPort:
    """An argument or a result: its name, global shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def check(self, value: Any) -> Array:
        """Return `value` as an array. Raises TypeError or ValueError, naming the port, for another type or shape."""
        if isinstance(value, bool | int | float | complex):
            value = np.asarray(value, self.dtype)
        if not isinstance(value, jax.Array | np.ndarray | np.generic):
            raise TypeError(f"{self.name} must be an array, not {type(value).__name__}")
        value = cast(Array, value)
        if not isinstance(value, jax.Array) and not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        if value.dtype != self.dtype:
            raise TypeError(f"{self.name} must have elements of type {self.dtype}, not {value.dtype}")
        if value.shape != self.shape:
            raise ValueError(f"{self.name} must have shape {self.shape}, not {value.shape}")
        return value


@dataclass(frozen=True)
class Port(ArrayPort):
    """An argument or a result over devices: its sharding on the mesh that the user named, and as a `spec` on the
    program's mesh. The program may reuse the memory of a `donated` argument."""

    sharding: NamedSharding
    spec: PartitionSpec
    donated: bool = False


class WithPorts(OfThisProcess):
    """A program with arguments and results over devices."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def in_shardings(self) -> tuple[NamedSharding, ...]:
        """The sharding of each argument."""
        return tuple(port.sharding for port in self.inputs)

    @property
    def out_shardings(self) -> tuple[NamedSharding, ...]:
        """The sharding of each result."""
        return tuple(port.sharding for port in self.outputs)


@dataclass(frozen=True)
class Interface:
    """The shardings of a main function's arguments and results; None is replicated.

    Attributes:
        donated: indices of the arguments whose memory the results may use.
        is_local: whether the types of `main` are those of shards.
        tokens: the number of leading arguments and results that are tokens, which jax passes between effects.
    """

    main: FuncOp
    inputs: Sequence[PlacedSharding | None]
    outputs: Sequence[PlacedSharding | None]
    donated: frozenset[int] = frozenset()
    is_local: bool = False
    tokens: int = 0

    @classmethod
    def of(cls, module: ModuleOp, tokens: int = 0) -> "Interface":
        """Return the interface of the main function. Raises DiagnosticError for a sharding that arrays cannot have."""
        main = function_to_run(module)
        count_in, count_out = len(main.function_type.inputs), len(main.function_type.outputs)
        return cls(
            main,
            [_placed(main, f"argument {index}", func_arg_sharding(main, index)) for index in range(count_in)],
            [_placed(main, f"result {index}", func_result_sharding(main, index)) for index in range(count_out)],
            frozenset(index for index in range(len(main.args)) if is_donated(main, index)),
            is_local(module),
            tokens,
        )

    @classmethod
    def without_shardings(cls, module: ModuleOp) -> "Interface":
        """Return the interface of the main function with all arguments and results replicated."""
        main = function_to_run(module)
        return cls(main, [None] * len(main.function_type.inputs), [None] * len(main.function_type.outputs))

    def ports(self, devices: DeviceMesh) -> tuple[list[Port], list[Port]]:
        """Return the arguments and the results as arrays over `devices`. Raises DiagnosticError for other types."""
        donated = [index in self.donated for index in range(len(self.inputs))]
        types = self.main.function_type.outputs.data
        results = zip(result_names(self.main), types, self.outputs, strict=True)
        return (
            [
                Port(each.name, each.shape, each.dtype, *self._sharding(each.name, placed, devices), donated)
                for each, placed, donated in zip(
                    self.arguments(), self.inputs[self.tokens :], donated[self.tokens :], strict=True
                )
            ],
            [
                Port(name, *self._whole(type_, placed), *self._sharding(name, placed, devices))
                for name, type_, placed in islice(results, self.tokens, None)
            ],
        )

    def arguments(self) -> list[ArrayPort]:
        """Return the arguments as global arrays. Raises DiagnosticError for a type that arrays do not have."""
        arguments = zip(argument_names(self.main), self.main.function_type.inputs.data, self.inputs, strict=True)
        return [
            ArrayPort(name, *self._whole(type_, placed)) for name, type_, placed in islice(arguments, self.tokens, None)
        ]

    def _sharding(
        self, name: str, placed: PlacedSharding | None, devices: DeviceMesh
    ) -> tuple[NamedSharding, PartitionSpec]:
        """Return the sharding on the mesh that the user named, and on the mesh of the program."""
        if placed is not None and placed.sharding.unreduced:
            self._check_unreduced(name, placed, devices)
        return devices.named_sharding(placed), devices.spec(placed)

    def _check_unreduced(self, name: str, placed: PlacedSharding, devices: DeviceMesh) -> None:
        """Raise DiagnosticError for partial results that no array can hold."""
        if placed.sharding.reduction != "sum":
            raise error(
                self.main,
                f"{name} is a partial {placed.sharding.reduction}, which cannot be passed; only partial sums can",
            )
        types = dict(zip(devices.mesh.axis_names, devices.mesh.axis_types, strict=True))
        if any(types[axis] is not AxisType.Explicit for axis in devices.unreduced_axes(placed)):
            advice = "arrays have unreduced axes only of type jax.sharding.AxisType.Explicit"
            raise error(self.main, f"{name} has unreduced axes, so it cannot be passed: {advice}")

    def _whole(self, type_: Attribute, placed: PlacedSharding | None) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
        shape, dtype = array_type(type_, self.main)
        return (placed.sharding.global_shape(shape, placed.mesh) if placed and self.is_local else shape), dtype


def function_to_run(module: ModuleOp) -> FuncOp:
    """Return the function @main of `module`. Raises DiagnosticError if it has none with a body."""
    main = find_main_function(module)
    if main is None or main.is_declaration or main.sym_name.data != "main":
        raise error(module, "there is no function @main to run")
    return main


def result_names(main: FuncOp) -> list[str]:
    """Return the name of each result of `main` in messages."""
    return [f"result {index}" for index in range(len(main.function_type.outputs))]


def _placed(main: FuncOp, name: str, sharding: TensorSharding | None) -> PlacedSharding | None:
    if sharding is None:
        return None
    mesh = mesh_of(sharding, main)
    if mesh.is_maximal:
        raise error(main, f"{name} has a single-device sharding, which is not supported for arguments and results")
    if not mesh.axes:
        return None
    return PlacedSharding(sharding, mesh)
