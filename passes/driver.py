"""The driver of all tools and the Python API: read and write files, run passes and the main pipelines."""

import errno
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, Location, error
from sdy.foreign_dialects import adopt, check_module
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import cached_walks, uncached_walks
from sdy.passes.common.call_graph import functions
from sdy.passes.common.manual_axes import check_manual_axes
from sdy.passes.pipelines import PartitionPipeline, Pipeline, PreparePipeline, PropagationPipeline
from sdy.passes.policy import Policy, apply_policy
from sdy.progress import current_reporter, task
from sdy.text import context, verify
from sdy.text.large_stack import on_large_stack_if_deep
from sdy.text.reading.other_formats import decode_program

STANDARD_STREAM = "-"
"""The path of standard input, for reading, and standard output, for writing."""

SEPARATOR = "// -----\n"
"""The line between the modules of a file that is split."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a module, and its file name in diagnostics."""

    text: str
    name: str


def write(path: str, content: str | bytes) -> None:
    """Write `content` atomically to the file at `path`, or to standard output if `path` is `-`.

    Raises:
        DiagnosticError: The file cannot be written.
    """
    if path == STANDARD_STREAM:
        if isinstance(content, str):
            sys.stdout.write(content)
        else:
            sys.stdout.buffer.write(content)
        return
    data = content.encode() if isinstance(content, str) else content
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a device or a pipe, such as /dev/null
            return
        partial = _partial(target)
        try:
            partial.write_bytes(data)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as problem:
        raise _cannot("write", path, problem) from None


def check_writable(*paths: str | None) -> None:
    """Raise the error of `write` for a file that cannot be written, before what it is to contain is computed."""
    for path in paths:
        if path is None or path == STANDARD_STREAM:
            continue
        target = Path(path)
        try:
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if target.is_file() or not target.exists():
                partial = _partial(target)
                partial.touch()
                partial.unlink()
        except OSError as problem:
            raise _cannot("write", path, problem) from None


def _partial(target: Path) -> Path:
    """Return the path at which a file is written before it takes its place."""
    return target.with_name(f".{target.name}.{os.getpid()}.partial")


_OTHER_FILES = {".py": "a Python file", ".ipynb": "a notebook", ".html": "a page"}
"""Files that are given for a program by mistake, by suffix."""


def read(path: str) -> Source:
    """Read the file at `path`, or standard input if `path` is `-`; bytecode is decoded to text.

    Raises:
        DiagnosticError: The file cannot be read, or is no program by its name.
    """
    if (kind := _OTHER_FILES.get(Path(path).suffix)) is not None:
        how = "`jax.jit(f).lower(...).as_text(debug_info=True)`"
        raise error(Location(path, 1, 1), f"{kind} is not a program: write the text of {how} to a file")
    if path == STANDARD_STREAM:
        return Source(decode_program(sys.stdin.buffer.read(), "<stdin>"), "<stdin>")
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise _cannot("read", path, problem) from None
    return Source(decode_program(data, path), path)


def split(source: Source) -> list[Source]:
    """Split `source` at its `// -----` lines; the name of a part locates the lines of its diagnostics in the file."""
    parts: list[Source] = []
    start = 0
    lines = source.text.splitlines(keepends=True)
    for index, line in enumerate([*lines, SEPARATOR]):
        if line.strip() == SEPARATOR.strip() or index == len(lines):
            parts.append(Source("".join(lines[start:index]), f"within split at {source.name}:{start + 1} offset "))
            start = index + 1
    return parts


def _cannot(action: str, path: str, problem: OSError) -> DiagnosticError:
    reason = (problem.strerror or str(problem)).lower()
    return error(Location(path, 1, 1), f"cannot {action} the file: {reason}")


Observer = Callable[[ModulePass, ModuleOp], None]
"""A callback that runs before or after each pass, with the pass and the module.

It must not insert, move or erase operations.
"""


def flatten(passes: Iterable[ModulePass], module: ModuleOp, count: int = 0) -> Iterator[tuple[ModulePass, str]]:
    """Yield the individual passes for `module`, with pipelines expanded, each with its label for progress reports.

    The label is the name of the pass and, in a pipeline of `count` passes, its number: `sdy-close-shardings (38 of
    44)`.
    """
    for number, step in enumerate(passes, 1):
        if isinstance(step, Pipeline):
            # The count is an estimate for progress reports: the passes of a pipeline may depend on earlier ones.
            parts = sum(1 for _ in step.passes(module)) if current_reporter() else 0
            yield from flatten(step.numbered_passes(module), module, parts)
        else:
            yield step, f"{step.name} ({number} of {count})" if count else step.name


@dataclass
class Timing:
    """Elapsed seconds by stage, in the order in which the stages first ran."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, name: str, label: str = "") -> Generator[None]:
        """Add the time of the `with` block to stage `name`; progress reports show `label`, or the name."""
        start = time.perf_counter()
        try:
            with task(label or name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """Format the stages with their shares of the total as a text table."""
        total = sum(self.seconds.values()) or 1.0
        rows = [f"{seconds:10.4f} s {seconds / total:7.1%}  {name}" for name, seconds in self.seconds.items()]
        return "\n".join([*rows, f"{total:10.4f} s {1:7.1%}  total"])


_checked: ContextVar[bool] = ContextVar("checked", default=False)
"""True if the use of manual axes is checked after each pass."""


@contextmanager
def checked_passes() -> Generator[None]:
    """Check in the `with` block that no pass leaves a sharding that uses a manual axis of an enclosing computation.

    All tests run with this check. The verifier, which few callers run after each pass, rejects most of these shardings
    too.

    Raises:
        DiagnosticError: A pass leaves such a sharding.
    """
    token = _checked.set(True)
    try:
        yield
    finally:
        _checked.reset(token)


@gc_control.paused()
def run_passes(
    module: ModuleOp,
    passes: Iterable[ModulePass] | str,
    *,
    ctx: Context | None = None,
    verify_each: bool = False,
    before_each: Observer | None = None,
    after_each: Observer | None = None,
    timing: Timing | None = None,
) -> None:
    """Run `passes` on `module`, in place.

    Operations of other packages' dialects with the same names are converted to ours first.

    Args:
        module: The module to transform.
        passes: Passes, or their names and options in the syntax of `sdy-opt --pass-pipeline`:
            `"sdy-import-pipeline,sdy-basic-propagate{keep-sharding-rules=true}"`.
        ctx: The dialects; defaults to all known dialects.
        verify_each: Verify the module after each pass.
        before_each: Called before each pass with the pass and the module.
        after_each: Called after each pass with the pass and the module.
        timing: Accumulates the elapsed seconds of each pass.

    Raises:
        DiagnosticError: `passes` cannot be parsed or names an unknown pass, a pass fails, or verification fails.
        TypeError: `module` is not a module.
    """
    check_module(module)
    if isinstance(passes, str):
        from sdy.passes.spec import parse_pipeline

        passes = parse_pipeline(passes)
    steps = passes
    ctx = ctx or context()
    timing = timing or Timing()

    def run() -> None:
        adopt(module)
        for step, label in flatten(steps, module):
            if before_each:
                before_each(step, module)
            with (
                timing.stage(step.name, label),
                nullcontext() if isinstance(step, AnalysisPreservingPass) else uncached_walks(),
            ):
                step.apply(ctx, module)
            if after_each:
                after_each(step, module)
            if _checked.get():
                check_manual_axes(module)
            if verify_each:
                with timing.stage("verification"):
                    verify(module)

    with cached_walks():
        on_large_stack_if_deep(module, run)


def propagate(module: ModuleOp, policy: Policy | None = None, *, unify_meshes: bool = True, **options: Any) -> None:
    """Propagate a sharding to every tensor of `module`, in place.

    Runs `sdy-prepare-pipeline`, which imports GSPMD shardings and decomposes operations, calls `policy`, and runs
    `sdy-propagation-pipeline`.

    Args:
        module: The module.
        policy: Called with the module's operations before propagation; it can partition some of them with `sdy.split`.
        unify_meshes: Convert shardings on different meshes over the same devices to a common mesh.
        **options: Options of `sdy-propagation-pipeline`, for example `conservative_propagation=True`.

    Raises:
        DiagnosticError: The module cannot be propagated.
        TypeError: An option is unknown, or `module` is not a module.
    """
    pipeline = PropagationPipeline(unify_meshes=unify_meshes, **options)
    prepare(module, policy)
    run_passes(module, [pipeline])


def prepare(module: ModuleOp, policy: Policy | None = None) -> None:
    """Run `sdy-prepare-pipeline`, then call `policy` with the module's operations."""
    check_is_spmd(module)
    run_passes(module, [PreparePipeline()])
    if policy is not None:
        apply_policy(module, policy)


def partition(module: ModuleOp, **options: Any) -> None:
    """Partition the propagated `module` into its per-device program, in place.

    Runs `sdy-partition-pipeline`. Each tensor then has the shape of its shard, and communication between devices is
    explicit as StableHLO collectives.

    Args:
        module: The propagated module.
        **options: Options of `sdy-partition-pipeline`.

    Raises:
        DiagnosticError: An operation cannot be partitioned.
        TypeError: An option is unknown, or `module` is not a module.
    """
    check_is_spmd(module)
    run_passes(module, [PartitionPipeline(**options)])


def check_is_spmd(module: ModuleOp) -> None:
    """Raise DiagnosticError for a program of the MPMD dialect, whose functions have several meshes."""
    check_module(module)
    function = mpmd_function(module)
    if function is not None:
        raise error(
            function,
            "the program is on several meshes (MPMD), not one; sdy.mpmd.plan predicts its cost, and sdy.mpmd.run "
            "executes it",
        )


def mpmd_function(module: ModuleOp) -> FuncOp | None:
    """Return the first function of the MPMD dialect, which has a topology of meshes, or None."""
    topologies = ((function, function.attributes.get("topology")) for function in functions(module))
    return next((function for function, each in topologies if each and each.name == "mpmd.topology"), None)
