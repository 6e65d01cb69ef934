"""Speed of creating sharding rules, compared with the C++ Shardy in jaxlib.

    python bench/rules.py [LAYERS ...]          2 12 48 by default

The pass `sdy-populate-op-sharding-rules`, with and without `conservative-propagation`, runs on the training step of
examples/transformer.py with that many layers. MLIR verifies the module after a pass by default; the C++ pass is timed
with and without the verifier, ours runs without. They take turns; each time is the minimum of several. The exit status
is 1 if a rule differs from the C++ one.
"""

import argparse
import sys

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager
from rich.console import Console
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from measure import least_seconds, lowered
from sdy.dialect.attributes import SHARDING_RULE
from sdy.passes.propagation.populate_op_sharding_rules import PopulateOpShardingRulesPass
from sdy.text import context, format, parse

OURS, CPP, CPP_VERIFIED = "sdy", "C++", "C++, verified"
HEADINGS = ("layers", "operations", "", "rules", f"{OURS}: ms", f"{CPP}: ms", f"{CPP_VERIFIED}: ms", "µs/op")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the creation of sharding rules with the C++ pass in jaxlib.")
    parser.add_argument("layers", nargs="*", type=int, default=[2, 12, 48])
    table = Table()
    for heading in (*HEADINGS, f"{OURS} / {CPP}", f"{OURS} / {CPP_VERIFIED}"):
        table.add_column(heading, justify="right" if heading else "left")
    same = True
    for layers in parser.parse_args().layers:
        text = lowered(layers)
        for conservative in (False, True):
            same &= compare(layers, text, conservative, table)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return int(not same)


def compare(layers: int, text: str, conservative: bool, table: Table) -> bool:
    """Add a row to `table`. Return true if all our rules equal those of the C++ pass."""
    step = PopulateOpShardingRulesPass(conservative)
    option = f"{{conservative-propagation={str(conservative).lower()}}}"
    pipeline = f"builtin.module(func.func({step.name}{option}))"
    with make_ir_context():

        def run_cpp(module: ir.Module, verified: bool = False) -> ir.Module:
            manager = PassManager.parse(pipeline)
            manager.enable_verifier(verified)
            manager.run(module.operation)
            return module

        def run_ours(module: ModuleOp) -> ModuleOp:
            step.apply(context(), module)
            return module

        ours, theirs = run_ours(parse(text)), run_cpp(ir.Module.parse(text))
        seconds = least_seconds(
            {
                OURS: (lambda: parse(text), run_ours),
                CPP: (lambda: ir.Module.parse(text), run_cpp),
                CPP_VERIFIED: (lambda: ir.Module.parse(text), lambda module: run_cpp(module, verified=True)),
            }
        )
        rules = [op.attributes[SHARDING_RULE] for op in ours.walk() if SHARDING_RULE in op.attributes]
        count = sum(1 for _ in ours.walk())
        times = (seconds[OURS], seconds[CPP], seconds[CPP_VERIFIED])
        table.add_row(
            f"{layers}",
            f"{count:,}",
            "conservative" if conservative else "usual",
            f"{len(rules):,}, {len(set(map(id, rules)))} distinct",
            *(f"{time * 1e3:.1f}" for time in times),
            f"{times[0] / count * 1e6:.2f}",
            *(f"{times[0] / time:.2f}" for time in times[1:]),
        )
        return format(ours, generic=True) == theirs.operation.get_asm(print_generic_op_form=True)


if __name__ == "__main__":
    sys.exit(main())
