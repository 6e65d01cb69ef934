"""Speed of parsing and printing MLIR's generic text, compared with stock xDSL and MLIR's C++.

    python bench/text.py [LAYERS ...]          2 12 48 192 by default

The program is the training step of examples/transformer.py with that many layers. All three parse the same text, and
xDSL's parser uses the same dialects as ours, so that both build the same operations. Verification is a separate row;
MLIR's parser always verifies, so its verification time is subtracted. The three take turns; each time is the minimum of
several, without Python's garbage collector. The exit status is 1 if a text differs from MLIR's.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from io import StringIO

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from rich.console import Console
from rich.table import Table
from xdsl.ir import Operation
from xdsl.parser import Parser as StockParser
from xdsl.printer import Printer as StockPrinter

from measure import Activity, least_seconds, lowered, nothing
from sdy.text import context, format, verify
from sdy.text.reading.parser import parse_module

OURS, STOCK, CPP = "sdy", "xDSL", "MLIR C++"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare parsing and printing with stock xDSL and with MLIR.")
    parser.add_argument("layers", nargs="*", type=int, default=[2, 12, 48, 192])
    same = True
    for layers in parser.parse_args().layers:
        same &= compare(layers)
    return int(not same)


def compare(layers: int) -> bool:
    """Print the times for this number of layers. Return true if our text equals MLIR's."""
    with make_ir_context():
        cpp = ir.Module.parse(lowered(layers)).operation
        text = str(cpp.get_asm(print_generic_op_form=True))
        ours = parse_module(text, "transformer.mlir", context())
        stock = StockParser(context(), text).parse_module()
        stages: tuple[dict[str, Activity], ...] = (
            {
                OURS: lambda _: parse_module(text, "transformer.mlir", context()),
                STOCK: lambda _: StockParser(context(), text).parse_module(),
                CPP: lambda _: ir.Module.parse(text),
            },
            {OURS: lambda _: verify(ours), STOCK: lambda _: stock.verify(), CPP: lambda _: cpp.verify()},
            {
                OURS: lambda _: format(ours, generic=True),
                STOCK: lambda _: stock_text(stock),
                CPP: lambda _: cpp.get_asm(print_generic_op_form=True),
            },
        )
        parsing, verifying, printing = (
            least_seconds({name: (nothing, act) for name, act in activities.items()}, collecting=False)
            for activities in stages
        )
        parsing[CPP] -= verifying[CPP]
    count = sum(1 for _ in ours.walk())
    show(
        f"{layers} layers, {count:,} operations, {len(text) / 1e6:.2f} MB of generic text",
        {"parse": parsing, "verify": verifying, "print": printing},
        count,
    )
    return format(ours, generic=True) == text


def stock_text(op: Operation) -> str:
    """Print `op` in generic form with xDSL's own printer."""
    stream = StringIO()
    StockPrinter(stream=stream, print_generic_format=True).print_op(op)
    return stream.getvalue()


def show(title: str, times: Mapping[str, Mapping[str, float]], count: int) -> None:
    """Print the seconds of each activity of the three, and their ratios."""
    names: Sequence[str] = (OURS, STOCK, CPP)
    table = Table(title=title)
    for heading in ("", *(f"{name}: s" for name in names), "sdy: µs/op", "xDSL / sdy", "sdy / C++"):
        table.add_column(heading, justify="right" if heading else "left")
    for activity, by_name in times.items():
        seconds = [by_name[name] for name in names]
        ours, stock, cpp = seconds
        table.add_row(
            activity,
            *(f"{each:.4f}" for each in seconds),
            f"{ours / count * 1e6:.1f}",
            f"{stock / ours:.1f}",
            f"{ours / cpp:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
