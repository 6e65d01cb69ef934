"""Output of sdy-run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from sdy.dialect.shardings import func_result_sharding, get_sharding
from sdy.ir.walking import operations
from sdy.tools.comparison import Comparison
from sdy.tools.terminal import Terminal

if TYPE_CHECKING:
    from sdy.passes.account.account import Account


@dataclass(frozen=True)
class RunAccount:
    """Statistics of a run; `seconds` has the time of each stage."""

    name: str
    operations: int
    initial_shardings: int
    propagated_shardings: int
    costs: "Account"
    seconds: Mapping[str, float]
    comparison: Comparison


def count_operations(module: ModuleOp) -> int:
    """Return the number of operations in `module`."""
    return len(operations(module)) - 1


def count_shardings(module: ModuleOp) -> int:
    """Return the number of values and function results that have a sharding."""
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


def show(account: RunAccount, console: Terminal) -> None:
    """Print the statistics."""
    console.print(account.name, style="bold")
    summary = Table(box=None, show_header=False, padding=(0, 2))
    summary.add_row("operations", f"{account.operations:,}")
    summary.add_row("shardings", f"{account.initial_shardings:,} given, {account.propagated_shardings:,} propagated")
    console.print(summary)
    console.print(str(account.costs))
    console.print(_times(account.seconds))
    account.comparison.show(console)


def _times(seconds: Mapping[str, float]) -> Table:
    table = Table("stage", box=SIMPLE)
    table.add_column("seconds", justify="right")
    for stage, time in seconds.items():
        table.add_row(stage, f"{time:.3f}")
    return table
