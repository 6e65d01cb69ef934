"""Bytes received in reshards planned by sdy, by Shardy and by XLA's partitioner, with a lower bound.

    python bench/reshards.py [--pairs N] [--compiled N]

For pairs of shardings of tensors of rank 2 to 4 over a 2x2x2 and a 4x2 mesh, including sub-axes, the table has the
bytes received by a device, averaged over devices and pairs:

    ours     the collectives that the partitioner inserts: `sdy-reshard-to-collectives{least-communication=true}`
    Shardy   those of the C++ pass `sdy-reshard-to-collectives` in jaxlib
    search   the cheapest sequence of collectives, by Dijkstra's algorithm over all shardings
    XLA      the collectives in the HLO that XLA partitions and compiles for eight CPU devices
    bound    the elements of its target shard that a device does not hold: a lower bound, often not attainable

All pairs are compared with Shardy and the search, or N of each kind with `--pairs N`. XLA has to compile each reshard,
so that it is compared on `--compiled N` pairs of each kind, 300 by default. Samples are deterministic. The exit status
is 1 if ours is more than another for any pair; these pairs are printed.
"""

import argparse
import itertools
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jax.extend.backend import get_backend, get_compile_options
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
from rich.console import Console
from rich.table import Table
from xdsl.dialects.func import FuncOp

sys.path.append(str(Path(__file__).parent.parent / "tests/support"))

from collective_paths import Collectives
from sdy.axes import AxisRef, merge_sub_axes, total_size
from sdy.device_groups import shard_indices
from sdy.dialect.collectives import AllGatherOp, AllSliceOp, AllToAllOp, CollectivePermuteOp
from sdy.mesh import Mesh
from sdy.passes.jax.hlo_received import bytes_received
from sdy.passes.spmd.reshard.cheapest_plan import cheapest_plan
from sdy.passes.spmd.reshard.collective_cost import elements_received
from sdy.passes.spmd.reshard.collective_steps import (
    AllGather,
    AllSlice,
    AllToAll,
    AxesPerDim,
    Collective,
    CollectivePermute,
)
from sdy.text import parse

_BYTES = 4
"""The bytes of an f32 element."""
_DEVICES = 8

X, Y, Z = AxisRef("x"), AxisRef("y"), AxisRef("z")
HALVES = [AxisRef("x", 1, 2), AxisRef("x", 2, 2)]
MESHES = {"2x2x2": (Mesh.of({"x": 2, "y": 2, "z": 2}), [X, Y, Z]), "4x2": (Mesh.of({"x": 4, "y": 2}), [*HALVES, Y])}
"""Meshes, and the axes and sub-axes that shard dimensions, in any order."""
SHAPES = ((64, 64), (16, 16, 16), (8, 8, 8, 8))

Pair = tuple[AxesPerDim, AxesPerDim]


@dataclass(frozen=True)
class Kind:
    """The reshards of a tensor of `shape` over `mesh`."""

    name: str
    mesh: Mesh
    pieces: Sequence[AxisRef]
    shape: tuple[int, ...]

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join(map(str, self.shape))}xf32>"

    def shardings(self, pieces: Sequence[AxisRef]) -> list[AxesPerDim]:
        """Return all shardings over subsets of `pieces`."""
        shardings: dict[AxesPerDim, None] = {}
        for count in range(len(pieces) + 1):
            for order in itertools.permutations(pieces, count):
                for cuts in itertools.combinations_with_replacement(range(count + 1), len(self.shape) - 1):
                    bounds = itertools.pairwise((0, *cuts, count))
                    shardings[tuple(merge_sub_axes(order[start:end], self.mesh) for start, end in bounds)] = None
        return list(shardings)

    def pairs(self) -> list[Pair]:
        """Return all pairs of shardings."""
        shardings = self.shardings(self.pieces)
        return list(itertools.product(shardings, shardings))

    def cost(self, steps: Sequence[Collective], pair: Pair) -> float:
        """Return the bytes received by a device in `steps`, which implement the reshard `pair`."""
        return elements_received(steps, pair[0], self.shape, self.mesh) * _BYTES / _DEVICES

    def ours(self, pair: Pair) -> float:
        return self.cost(cheapest_plan(*pair, self.shape, self.mesh), pair)

    def bound(self, pair: Pair) -> float:
        """Return the bytes of a device's target shard that are not in its source shard."""
        held, needed = (list(zip(*map(self.ranges, range(len(self.shape)), axes), strict=True)) for axes in pair)
        missing = 0
        for have, need in zip(held, needed, strict=True):
            overlaps = (max(0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in zip(have, need, strict=True))
            missing += math.prod(end - start for start, end in need) - math.prod(overlaps)
        return missing * _BYTES / _DEVICES

    def ranges(self, dim: int, axes: Sequence[AxisRef]) -> list[tuple[int, int]]:
        """Return the start and end of each device's shard of a dimension sharded over `axes`."""
        size = self.shape[dim] // total_size(axes, self.mesh)
        return [(index * size, index * size + size) for index in shard_indices(axes, self.mesh)]

    def searched(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the bytes of the cheapest sequence of collectives for each of `pairs`."""
        collectives: dict[tuple[AxisRef, ...], Collectives] = {}
        received: list[float] = []
        for source, target in pairs:
            used = [axis for axes in (*source, *target) for axis in axes]
            pieces = tuple(piece for piece in self.pieces if any(map(piece.overlaps, used)))
            if pieces not in collectives:
                collectives[pieces] = Collectives(self.shardings(pieces), self.shape, self.mesh)
            received.append(collectives[pieces].received_from(source)[target] * _BYTES / _DEVICES)
        return received

    def shardy(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the bytes received in Shardy's collectives for each of `pairs`."""
        functions = (
            f"func.func @f{i}(%a: {self.type} {{sdy.sharding = #sdy.sharding{sharding(source)}}}) -> {self.type} {{\n"
            f"  %0 = sdy.reshard %a {sharding(target)} : {self.type}\n  return %0 : {self.type}\n}}"
            for i, (source, target) in enumerate(pairs)
        )
        with make_ir_context():
            module = ir.Module.parse("\n".join([self.declaration, *functions]))
            PassManager.parse("builtin.module(func.func(sdy-reshard-to-collectives))").run(module.operation)
            text = str(module)
        planned = (list(steps(op)) for op in parse(text).body.block.ops if isinstance(op, FuncOp))
        return [self.cost(plan, pair) for plan, pair in zip(planned, pairs, strict=True)]

    def xla(self, pair: Pair) -> float:
        """Return the bytes received in the reshard `pair` compiled by XLA."""
        given, wanted = (f"{self.type} {{sdy.sharding = #sdy.sharding{sharding(axes)}}}" for axes in pair)
        text = f"{self.declaration}\nfunc.func @main(%a: {given}) -> ({wanted}) {{\n  return %a : {self.type}\n}}"
        options = get_compile_options(1, _DEVICES, device_assignment=np.arange(_DEVICES).reshape(1, _DEVICES))
        build = options.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.debug_options.xla_backend_optimization_level = 0
        executable = get_backend("cpu").compile_and_load(text, jax.devices("cpu")[:_DEVICES], options)
        return bytes_received(executable.hlo_modules()[0].to_string(), _DEVICES)

    @property
    def declaration(self) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in self.mesh.axes)
        return f"sdy.mesh @mesh = <[{axes}]>"


def sharding(axes_per_dim: AxesPerDim) -> str:
    return f"<@mesh, [{', '.join('{' + ', '.join(map(str, axes)) + '}' for axes in axes_per_dim)}]>"


def steps(function: FuncOp) -> Iterator[Collective]:
    """Yield the collectives of `function` as steps of a plan."""
    for op in function.body.block.ops:
        match op:
            case AllSliceOp():
                yield AllSlice(op.slicing_axes.data, op.out_sharding.data.dim_axes)
            case AllGatherOp():
                yield AllGather(op.gathering_axes.data, op.out_sharding.data.dim_axes)
            case AllToAllOp():
                (move,) = op.params.data
                yield AllToAll(move.axes, move.src_dim, move.tgt_dim, op.out_sharding.data.dim_axes)
            case CollectivePermuteOp():
                yield CollectivePermute(op.out_sharding.data.dim_axes)
            case _:
                pass


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Compare bytes received in reshards with Shardy and XLA's partitioner."
    )
    parser.add_argument("--pairs", type=int, help="pairs of each kind to compare with Shardy; all by default")
    parser.add_argument("--compiled", type=int, default=300, help="pairs of each kind to compare with XLA")
    arguments = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", _DEVICES)
    table = Table(title="Bytes that a device receives, on average")
    for heading in ("tensor", "mesh", "pairs", "ours", "other", "", "bound", "ours / other", "ours / bound"):
        table.add_column(heading, justify="left" if heading in ("tensor", "mesh", "") else "right")
    worse: list[str] = []
    for shape, (name, (mesh, pieces)) in itertools.product(SHAPES, MESHES.items()):
        kind = Kind(name, mesh, pieces, shape)
        every = kind.pairs()
        draw = random.Random(f"{shape} {name}")
        pairs = every if arguments.pairs is None else draw.sample(every, min(arguments.pairs, len(every)))
        worse += compare(table, kind, pairs, "Shardy", kind.shardy(pairs))
        worse += compare(table, kind, pairs, "search", kind.searched(pairs))
        pairs = draw.sample(every, min(arguments.compiled, len(every)))
        worse += compare(table, kind, pairs, "XLA", list(map(kind.xla, pairs)))
    console = Console()
    console.print(table)
    for line in worse:
        console.print(line, markup=False)
    return int(bool(worse))


def compare(table: Table, kind: Kind, pairs: Sequence[Pair], name: str, theirs: Sequence[float]) -> list[str]:
    """Add a row to `table`, and return a line for each pair where ours is more."""
    ours = list(map(kind.ours, pairs))
    means = [sum(received) / len(pairs) for received in (ours, theirs, map(kind.bound, pairs))]
    ratios = (f"{means[0] / other:.3f}" for other in means[1:])
    mine, other, bound = (f"{mean:,.0f}" for mean in means)
    table.add_row("x".join(map(str, kind.shape)), kind.name, f"{len(pairs):,}", mine, other, name, bound, *ratios)
    return [
        f"{kind.type} {kind.name}: {' -> '.join(map(sharding, pair))}: ours {a:,.0f}, {name} {b:,.0f}"
        for pair, a, b in zip(pairs, ours, theirs, strict=True)
        if a > b
    ]


if __name__ == "__main__":
    sys.exit(main())
