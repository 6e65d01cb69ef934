"""The account that sdy-run gives of a program."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.dialect.walk import operations
from sdy.mesh import Mesh
from sdy.passes.execution.hlo_collectives import Traffic, total
from sdy.passes.propagation.provenance.ways import Choice
from sdy.shown_text import shown
from sdy.tools.comparison import Comparison
from sdy.tools.terminal import Terminal


@dataclass(frozen=True)
class Account:
    """What there is to tell. Times are in seconds, by stage."""

    name: str
    operations: int
    shardings_given: int
    shardings_found: int
    layout: Choice | None
    meshes: Mapping[str, Mesh]
    devices: str
    collectives: Mapping[str, Traffic]
    seconds: Mapping[str, float]
    comparison: Comparison


def count_operations(module: ModuleOp) -> int:
    """The number of operations in `module`."""
    return len(operations(module)) - 1


def count_shardings(module: ModuleOp) -> int:
    """The number of values, functions' results among them, that have a sharding."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    results = (
        func_result_sharding(function, index)
        for function in functions
        for index in range(len(function.function_type.outputs))
    )
    return sum(sharding is not None for sharding in (*map(get_sharding, _values(module)), *results))


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in operations(module):
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def show(account: Account, console: Terminal) -> None:
    """Print the account."""
    meshes = [
        f"@{shown(name)} " + ", ".join(f"{shown(axis)}={size}" for axis, size in mesh.axes)
        for name, mesh in account.meshes.items()
    ]
    console.print(account.name, style="bold")
    summary = Table(box=None, show_header=False, padding=(0, 2))
    summary.add_row("operations", f"{account.operations:,}")
    summary.add_row("shardings", f"{account.shardings_given:,} given, {account.shardings_found:,} found by propagation")
    if account.layout:
        summary.add_row("layout", str(account.layout))
    summary.add_row("mesh", "; ".join(meshes) or "none")
    summary.add_row("devices", account.devices)
    console.print(summary)
    console.print(_collectives(account.collectives))
    console.print(_times(account.seconds))
    account.comparison.show(console)


def _collectives(traffic: Mapping[str, Traffic]) -> Table:
    table = Table("collective", box=SIMPLE)
    table.add_column("count", justify="right")
    table.add_column("bytes per device", justify="right")
    for kind, moved in sorted(traffic.items()):
        table.add_row(kind, f"{moved.count:,}", f"{moved.bytes:,}")
    if len(traffic) != 1:
        everything = total(traffic)
        table.add_row("all" if traffic else "none", f"{everything.count:,}", f"{everything.bytes:,}")
    return table


def _times(seconds: Mapping[str, float]) -> Table:
    table = Table("stage", box=SIMPLE)
    table.add_column("seconds", justify="right")
    for stage, time in seconds.items():
        table.add_row(stage, f"{time:.3f}")
    return table
