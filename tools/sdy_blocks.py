"""sdy-blocks: run a program out of core, in blocks that fit into memory, or write the graph of blocks."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from xdsl.dialects.builtin import ModuleOp

from sdy.diagnostics import error
from sdy.ir.companions import clone
from sdy.passes.blocks.block_shapes import within
from sdy.passes.blocks.graph import BlockGraph
from sdy.passes.blocks.split_reductions import SplitReductionsPass
from sdy.passes.driver import check_writable, read, run_passes, write
from sdy.passes.jax.program.inputs import NumpyArray, arrange_inputs, random_files, read_arrays
from sdy.progress import task
from sdy.text import parse
from sdy.tools.arguments import PROGRAM, add_inputs_options, byte_size, natural, tool_parser
from sdy.tools.comparison import Comparison, Reference, compare
from sdy.tools.entry import guarded
from sdy.tools.extensions import import_modules, take_rules
from sdy.tools.progress import progress
from sdy.tools.terminal import Terminal

_DESCRIPTION = """\
Fuse the operations of a StableHLO program, divide them into blocks that take little memory, and run the blocks one by
one. Inputs are read and results are written block by block, and values that do not fit are spilled to a temporary
folder, so that a program can need more memory than there is.
"""

_EXAMPLES = """\
examples:
  sdy-blocks program.mlir --memory-limit 256M --check
  sdy-blocks program.mlir --memory-limit 64M --input arg0=x.npy --input arg1=y.zarr --output results.zarr
  sdy-blocks program.mlir --scheduler tcp://localhost:8786 --output results.zarr
  sdy-blocks program.mlir --dot - | dot -Tsvg > blocks.svg
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`, by default the process's own, and return the exit status."""
    arguments = _parser().parse_args(argv)
    return guarded(lambda: run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("sdy-blocks", _DESCRIPTION, _EXAMPLES, no="--check finds a mismatch")
    parser.add_argument("file", metavar="FILE.mlir", help=PROGRAM)
    parser.add_argument(
        "--memory-limit",
        type=byte_size,
        default="1G",
        metavar="SIZE",
        help="memory limit in bytes, or with K, M, G or T (default: 1G)",
    )
    parser.add_argument(
        "--block-bytes",
        type=byte_size,
        metavar="SIZE",
        help="maximum size of a block (default: a quarter of the limit)",
    )
    parser.add_argument(
        "--split-reductions",
        type=natural,
        default=0,
        metavar="N",
        help="split every reduction into N partial ones and a second stage, even if it fits",
    )
    add_inputs_options(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_named_file,
        metavar="NAME=FILE",
        help="read an argument, arg0 for the first, from an .npy file or a Zarr array, block by block",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write the results to a Zarr group, as result0 and so on; an interrupted run goes on from it",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the Dask cluster of this scheduler")
    parser.add_argument("--check", action="store_true", help="compare with the unpartitioned program")
    parser.add_argument("--dot", metavar="FILE", help="write the graph for Graphviz instead of running it")
    parser.add_argument("--json", metavar="FILE", help="write the graph as JSON instead of running it")
    return parser


def _named_file(text: str) -> tuple[str, str]:
    """Parse `NAME=FILE`."""
    name, separator, path = text.partition("=")
    if not separator or not name or not path:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=FILE, such as arg0=x.zarr")
    return name, path


def run(arguments: argparse.Namespace) -> int:
    """Execute the command line.

    Raises:
        DiagnosticError: The program or its inputs are invalid.
    """
    # Imported lazily: they import JAX, which --help does not need.
    from sdy.passes.blocks.build import block_graph
    from sdy.passes.blocks.fit_blocks import fit_blocks
    from sdy.passes.blocks.run import BLOCKS_IN_MEMORY
    from sdy.passes.blocks.temporary_folder import temporary_folder
    from sdy.passes.blocks.validation import validate

    check_writable(arguments.dot, arguments.json)
    import_modules(arguments.imports)
    take_rules(arguments.custom_call_rules)
    source = read(arguments.file)
    with progress():
        with task("parse"):
            module = parse(source.text, source.name)
        original = clone(module)
        if arguments.split_reductions:
            run_passes(module, [SplitReductionsPass(arguments.split_reductions)])
        block_bytes = arguments.block_bytes or max(arguments.memory_limit // BLOCKS_IN_MEMORY, 1)
        with task("partition into blocks"):
            fit_blocks(module, block_bytes)
            graph = block_graph(module, within(block_bytes))
            validate(graph)
    if arguments.dot or arguments.json:
        return _draw(graph, arguments)
    console = Terminal()
    with temporary_folder("sdy-blocks-") as folder:
        inputs = _inputs(graph, original, arguments, folder)
        results = _run(graph, inputs, arguments, Path(arguments.output or Path(folder, "results")), console)
        if not arguments.check:
            return 0
        whole_inputs = [_whole(each, source.dtype) for each, source in zip(inputs, graph.sources, strict=True)]
        whole_results = [_whole(each, sink.dtype) for each, sink in zip(results, graph.sinks, strict=True)]
    with progress(), task("compare"):
        comparison = _compare(original, whole_inputs, whole_results)
    comparison.show(console)
    return 0 if comparison.holds else 1


def _draw(graph: BlockGraph, arguments: argparse.Namespace) -> int:
    from sdy.passes.blocks.drawing import to_dot, to_json

    if arguments.dot:
        write(arguments.dot, to_dot(graph))
    if arguments.json:
        write(arguments.json, json.dumps(to_json(graph), indent=1) + "\n")
    return 0


def _inputs(graph: BlockGraph, original: ModuleOp, arguments: argparse.Namespace, folder: Path) -> list[Any]:
    """Return the arguments: arrays, or paths of files, which blocks read; random ones are `.npy` files in `folder`."""
    from sdy.passes.jax.program.sharded_program import ShardedProgram

    ports = ShardedProgram.unpartitioned(original).inputs
    if arguments.inputs:
        return list(arrange_inputs(read_arrays(arguments.inputs), ports, arguments.inputs))
    files = dict(arguments.input)
    if unknown := sorted(files.keys() - {f"arg{number}" for number in range(len(ports))}):
        raise error(original, f"--input {unknown[0]}: the program takes {len(ports)} arguments, arg0, ...")
    if files and len(files) < len(ports):
        missing = next(number for number in range(len(ports)) if f"arg{number}" not in files)
        raise error(original, f"--input arg{missing}=FILE is missing: the program takes {len(ports)} arguments")
    if files:
        return [files[f"arg{number}"] for number in range(len(ports))]
    return random_files(ports, arguments.seed, folder)


def _run(
    graph: BlockGraph, inputs: Sequence[Any], arguments: argparse.Namespace, store: Path, console: Terminal
) -> Sequence[Any]:
    """Run the graph and print its statistics; return the results as Zarr arrays."""
    from sdy.passes.blocks.run import run_on_dask
    from sdy.passes.blocks.schedule import run as run_graph

    try:
        with progress(), task("run"):
            if arguments.scheduler:
                results = run_on_dask(graph, inputs, arguments.scheduler, store)
                statistics = None
            else:
                results, statistics = run_graph(graph, inputs, arguments.memory_limit, store)
    except (ValueError, OSError) as problem:
        raise error(None, str(problem)) from problem
    console.print(_table(graph))
    if statistics is None:
        console.print(f"{sum(1 for _ in graph.shards()):,} blocks")
    else:
        console.print(
            f"{statistics.shards:,} blocks, at most {statistics.most_bytes:,} bytes in memory, "
            f"{statistics.spilled_bytes:,} bytes spilled to files"
        )
    return results


def _whole(array: Any, dtype: np.dtype[Any]) -> NumpyArray:
    """Return all elements of an input or a result."""
    from sdy.passes.blocks.arrays import reader

    found = reader(array, dtype)
    return np.array(found.read([0] * len(found.shape), found.shape))


def _table(graph: BlockGraph) -> Table:
    """Tabulate the number of blocks and the bytes of the largest block of each kind of operation."""
    table = Table()
    for heading in ("operation", "blocks", "largest block, bytes"):
        table.add_column(heading, justify="left" if heading == "operation" else "right")
    for name in dict.fromkeys(work.name for work in graph.works):
        shards = [shard for work in graph.works if work.name == name for shard in work.shards]
        table.add_row(name, f"{len(shards):,}", f"{max(shard.nbytes for shard in shards):,}")
    return table


def _compare(original: ModuleOp, inputs: Sequence[NumpyArray], results: Sequence[NumpyArray]) -> Comparison:
    from sdy.passes.jax.api.compile import compile_unpartitioned
    from sdy.passes.jax.program.rounding import Rounding

    program = compile_unpartitioned(original)

    def run(reference_inputs: Sequence[NumpyArray]) -> list[NumpyArray]:
        return [np.asarray(result) for result in program(*reference_inputs)]

    # Blocks run the same operations, so that only sums in another order and fused roundings differ.
    rounding = Rounding.of(original, generosity=4)
    return compare(original, inputs, results, Reference("the unpartitioned program", run), rounding)
