"""The axes of the mesh along which the values in a `jax.shard_map` differ from device to device."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from xdsl.dialects.func import CallOp
from xdsl.ir import Block, Operation, SSAValue

from sdy.dialect.meshes import enclosing_module
from sdy.dialect.ops import ManualComputationOp
from sdy.interpreter.grid import Grid
from sdy.ir.walking import captured_values
from sdy.mesh import Mesh
from sdy.passes.common.call_graph import callee
from sdy.passes.common.properties import uniform_number
from sdy.passes.common.symbols import Symbols
from sdy.passes.spmd.costs.step_time import axes_of
from sdy.passes.spmd.local_module import COLLECTIVES
from sdy.stablehlo.collectives import AllGatherOp
from sdy.stablehlo.constants import PartitionIdOp
from sdy.stablehlo.control_flow import WhileOp
from sdy.stablehlo.elementwise import ConvertOp, DivOp, RemOp
from sdy.stablehlo.reducing_collectives import AllReduceOp

_EQUAL = AllGatherOp | AllReduceOp
"""Collectives whose results are equal on all devices of a group."""

Axes = frozenset[str]
_NONE: Axes = frozenset()


class Varying:
    """Data-flow analysis of a manual computation: the manual axes along which devices have other values.

    Values are equal along the axes that neither the specs of the operands name nor a device's number depends on, and
    along those of an all-reduce or an all-gather that computes them.
    """

    def __init__(self, manual: ManualComputationOp, mesh: Mesh) -> None:
        self._mesh = mesh
        module = enclosing_module(manual)
        assert module is not None
        self._symbols = Symbols(module)
        self._all = frozenset(manual.manual_axes.data)
        self._named = frozenset(axis.name for each in manual.out_shardings.data for axis in each.axes())
        """The axes that the specs of the results name."""
        self._axes: dict[SSAValue, Axes] = {}
        self._numbers: dict[SSAValue, np.ndarray] = {}
        """The values of the scalars that are computed from the number of a device, on each device."""
        self.collectives: dict[Operation, Axes] = {}
        """The axes of each collective."""
        for argument, sharding in zip(manual.body.block.args, manual.in_shardings.data, strict=True):
            self._axes[argument] = frozenset(axis.name for axis in sharding.axes()) & self._all
        self._run(manual.body.block)

    def axes(self, value: SSAValue) -> Axes:
        """Return the axes along which a value differs."""
        return self._axes.get(value, _NONE)

    @cached_property
    def used(self) -> Axes:
        """The axes along which values, but numbers of devices, differ, or that collectives or results have."""
        values = (axes for value, axes in self._axes.items() if value not in self._numbers)
        return self._named.union(*values, *self.collectives.values())

    def _run(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        operands = self._of((*op.operands, *(captured_values(op) if op.regions else ())))
        match op:
            case PartitionIdOp():
                self._number(op.results[0], np.arange(self._mesh.size))
                return
            case ConvertOp() if op.operands[0] in self._numbers:
                self._number(op.results[0], self._numbers[op.operands[0]])
                return
            case DivOp() | RemOp() if op.operands[0] in self._numbers and (by := uniform_number(op.operands[1])):
                number = self._numbers[op.operands[0]]
                self._number(op.results[0], number // int(by) if isinstance(op, DivOp) else number % int(by))
                return
            case WhileOp():
                self._loop(op)
                return
            case CallOp():
                block = callee(op, self._symbols).body.block
                for argument, value in zip(block.args, op.operands, strict=True):
                    self._axes[argument] = self.axes(argument) | self.axes(value)
                self._run(block)
                self._axes.update(zip(op.results, self._of_end(block), strict=True))
                return
            case ManualComputationOp():
                operands |= self._all
            case _ if isinstance(op, COLLECTIVES):
                axes = frozenset(axes_of(op, Grid(1, self._mesh.size), self._mesh))
                self.collectives[op] = axes
                operands = operands - axes if isinstance(op, _EQUAL) else operands | axes
            case _:
                for region in op.regions:
                    for inner in region.blocks:
                        self._axes.update(dict.fromkeys(inner.args, operands))
                        self._run(inner)
                        operands |= self._of(inner.last_op.operands if inner.last_op else ())
        self._axes.update(dict.fromkeys(op.results, operands))

    def _loop(self, op: WhileOp) -> None:
        """Iterate until the carried values differ along no more axes."""
        carried = [self.axes(value) for value in op.operands]
        while True:
            for region in op.regions:
                self._axes.update(zip(region.block.args, carried, strict=True))
                self._run(region.block)
            test, end = (self._of_end(region.block) for region in (op.cond, op.body))
            along = [before | after | test[0] for before, after in zip(carried, end, strict=True)]
            if along == carried:
                break
            carried = along
        self._axes.update(zip(op.results, carried, strict=True))

    def _of(self, values: Iterable[SSAValue]) -> Axes:
        return _NONE.union(*map(self.axes, values))

    def _of_end(self, block: Block) -> list[Axes]:
        return [self.axes(value) for value in (block.last_op.operands if block.last_op else ())]

    def _number(self, value: SSAValue, numbers: "np.ndarray") -> None:
        """Set the value of a scalar on each device."""
        self._numbers[value] = numbers
        sizes = [size for _, size in self._mesh.axes]
        places = np.argsort(self._mesh.device_ids) if self._mesh.device_ids else np.arange(self._mesh.size)
        grid = numbers[np.argsort(places)].reshape(sizes)
        differs = (
            name for index, name in enumerate(self._mesh.axis_names) if (grid != grid.take([0], axis=index)).any()
        )
        self._axes[value] = frozenset(differs) & self._all
