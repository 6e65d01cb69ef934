"""Summary of the layout and the cost of a program, in a few hundred entries, for golden files and comparisons.

Equal things share an entry: values of one type that are computed under one name, with a count per sharding. Names are
JAX's name scopes, such as `jit(step)/layer/dot_general`, which do not change when source lines move; the line is kept
beside the entry.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from xdsl.dialects.builtin import ModuleOp, NameLoc
from xdsl.ir import Operation

from sdy.diagnostics import Location, location_of
from sdy.dialect.axis_syntax import format_dims
from sdy.dialect.meshes import main_mesh, named_meshes
from sdy.dialect.shardings import func_arg_sharding, func_result_sharding, get_sharding
from sdy.interpreter.grid import Grid
from sdy.ir.shapes import shape
from sdy.ir.walking import operations
from sdy.mesh import Mesh
from sdy.passes.common.argument_names import argument_names
from sdy.passes.common.call_graph import main_function
from sdy.passes.layouts import PartitionedLayout
from sdy.passes.spmd.costs.communication import bytes_received, received
from sdy.passes.spmd.costs.footprint import peak_bytes
from sdy.passes.spmd.costs.step_time import axes_of
from sdy.sharding import TensorSharding
from sdy.stablehlo.constants import ConstantOp


@dataclass(frozen=True)
class Summary:
    """Comparable summary of a partitioned program: tables of shardings and collectives, and total costs."""

    TABLES: ClassVar = ("meshes", "arguments", "results", "values", "collectives")

    meshes: Mapping[str, str]
    arguments: Mapping[str, str]
    results: Mapping[str, str]
    values: Mapping[str, str]
    """Counts of shardings by name and type, such as `12 of [{}, {model}], 1 of replicated`."""
    collectives: Mapping[str, str]
    """Runs and bytes by kind, axes and name, such as `12 times, 724,000 bytes received`, the most bytes first."""
    received: int
    """The predicted bytes that a device receives in a run."""
    memory: int
    """The predicted peak memory of a device, in bytes."""
    lines: Mapping[str, Location] = field(default_factory=dict[str, Location], compare=False)
    """The source location of the first operation of each entry."""

    @classmethod
    def of(cls, layout: PartitionedLayout) -> "Summary":
        """Summarize a propagated program and its partitioned form."""
        main = main_function(layout.module)
        names = argument_names(main)
        lines: dict[str, Location] = {}
        collectives = _collectives(layout.local, lines)
        return cls(
            {name: _axes(mesh) for name, mesh in named_meshes(layout.module).items()},
            {
                f"{name} {argument.type}": _dims(func_arg_sharding(main, index))
                for index, (name, argument) in enumerate(zip(names, main.args, strict=True))
            },
            {
                f"result {index} {type_}": _dims(func_result_sharding(main, index))
                for index, type_ in enumerate(main.function_type.outputs)
            },
            _values(layout.module, lines),
            collectives,
            round(bytes_received(layout.local)),
            peak_bytes(layout.local),
            lines,
        )

    @property
    def root(self) -> str:
        """JAX's name of the function, such as `jit(step)`; empty if the operations have none."""
        return next((match[1] for entry in self.values if (match := _ROOT.match(entry))), "")

    def with_root(self, root: str) -> "Summary":
        """Return the summary with JAX's name of the function replaced; unchanged if one of the names is empty."""
        own = self.root
        if not own or not root or own == root:
            return self

        def renamed(entries: Mapping[str, Any]) -> dict[str, Any]:
            return {entry.replace(f"{own}/", f"{root}/", 1): value for entry, value in entries.items()}

        return replace(
            self,
            values=renamed(self.values),
            collectives=renamed(self.collectives),
            lines=renamed(self.lines),
        )


_ROOT = re.compile(r"(\w+\([^/]*\))/")
"""The function in JAX's name of an operation."""


def _axes(mesh: Mesh) -> str:
    return ", ".join(f"{name}={size}" for name, size in mesh.axes)


def _dims(sharding: TensorSharding | None) -> str:
    """Format the axes of each dimension without quotes, which JSON would escape."""
    return format_dims(sharding).replace('"', "")


def _values(module: ModuleOp, lines: dict[str, Location]) -> Mapping[str, str]:
    shardings: dict[str, Counter[str]] = defaultdict(Counter)
    for op in operations(module):
        for result in () if isinstance(op, ConstantOp) else op.results:
            if shape(result.type):
                key = f"{name_of_place(op)} {result.type}"
                shardings[key][_dims(get_sharding(result))] += 1
                _record_line(lines, key, op)
    return {key: _counted(shardings[key]) for key in sorted(shardings)}


def _counted(shardings: Counter[str]) -> str:
    ranked = sorted(shardings.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{times} of {sharding}" for sharding, times in ranked)


def _collectives(local: ModuleOp, lines: dict[str, Location]) -> Mapping[str, str]:
    mesh = main_mesh(local)
    times: dict[str, int] = defaultdict(int)
    bytes_: dict[str, float] = defaultdict(float)
    for each in received(local):
        op = each.collective
        axes = ", ".join(axes_of(op, Grid(1, mesh.size), mesh)) or "no axis"
        key = f"{op.name.rpartition('.')[2].replace('_', '-')} over {axes} at {name_of_place(op)}"
        times[key] += each.times
        bytes_[key] += each.bytes
        _record_line(lines, key, op)
    ranked = sorted(bytes_, key=lambda key: (-bytes_[key], key))
    return {key: f"{_times(times[key])}, {bytes_[key]:,.0f} bytes received" for key in ranked}


def _times(number: int) -> str:
    return "1 time" if number == 1 else f"{number:,} times"


def name_of_place(op: Operation) -> str:
    """Return JAX's name of `op`, including its scopes, or the operation's own name if JAX gave none."""
    return op.location.desc.data if isinstance(op.location, NameLoc) else op.name


def _record_line(lines: dict[str, Location], key: str, op: Operation) -> None:
    line = location_of(op)
    if line is not None:
        lines.setdefault(key, line)
