"""Text -> module -> passes -> text: what sdy-opt, sdy-run and the Python API all call."""

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
from xdsl.passes import ModulePass

from sdy import gc_control
from sdy.diagnostics import DiagnosticError, Location, error
from sdy.dialect.meshes import named_meshes
from sdy.foreign_dialects import adopt
from sdy.ir.editing import AnalysisPreservingPass
from sdy.ir.walking import cached_walks, invalidate, uncached_walks
from sdy.passes.common.manual_axes import check_manual_axes
from sdy.passes.common.symbol_dce import SymbolDcePass
from sdy.passes.importing.expand_operations import ExpandOperationsPass
from sdy.passes.importing.split_triangular_solves import SplitTriangularSolvesPass
from sdy.passes.pipelines import PartitionPipeline, Pipeline, PropagationPipeline
from sdy.passes.policy.policy import Policy, apply_policy
from sdy.progress import current_reporter, task
from sdy.text import context, verify
from sdy.text.large_stack import on_large_stack_if_deep
from sdy.text.reading.other_formats import decoded

STANDARD_STREAM = "-"
"""The path that means standard input where something is read, and standard output where it is written."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name that diagnostics give it."""

    text: str
    name: str


def write(path: str, content: str | bytes) -> None:
    """Write a text, or bytes, to the file at `path`, whole or not at all, or to standard output for `-`."""
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
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(data)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as problem:
        raise _cannot("write", path, problem) from None


def read(path: str) -> Source:
    """The text of the file at `path`, or of standard input for `-`; of bytecode, that of the program that it is.

    Raises DiagnosticError where it cannot be read.
    """
    if path == STANDARD_STREAM:
        return Source(decoded(sys.stdin.buffer.read(), "<stdin>"), "<stdin>")
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise _cannot("read", path, problem) from None
    return Source(decoded(data, path), path)


def _cannot(what: str, path: str, problem: OSError) -> DiagnosticError:
    reason = (problem.strerror or str(problem)).lower()
    return error(Location(path, 1, 1), f"cannot {what} the file: {reason}")


Observer = Callable[[ModulePass, ModuleOp], None]
"""Called before or after each pass, with the pass and the module as it found or left it."""


def flatten(passes: Iterable[ModulePass], module: ModuleOp, count: int = 0) -> Iterator[tuple[ModulePass, str]]:
    """The passes that do the work on `module`, a pipeline's instead of the pipeline, and what is told of each.

    That is its name and, of `count` passes of a pipeline, which it is: `sdy-close-shardings (38 of 44)`.
    """
    for number, step in enumerate(passes, 1):
        if isinstance(step, Pipeline):
            # Until its passes have run, a pipeline can but guess which others follow; to count them is for show.
            parts = sum(1 for _ in step.passes(module)) if current_reporter() else 0
            yield from flatten(step.numbered_passes(module), module, parts)
        else:
            yield step, f"{step.name} ({number} of {count})" if count else step.name


@dataclass
class Timing:
    """Seconds spent, by stage, in the order in which the stages first ran."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, name: str, told: str = "") -> Generator[None]:
        """Add the time of the `with` block to stage `name`, of which whoever watches is told this, or more."""
        start = time.perf_counter()
        try:
            with task(told or name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """The stages and their share of the whole, as lines of text."""
        total = sum(self.seconds.values()) or 1.0
        rows = [f"{seconds:10.4f} s {seconds / total:7.1%}  {name}" for name, seconds in self.seconds.items()]
        return "\n".join([*rows, f"{total:10.4f} s {1:7.1%}  total"])


_checked: ContextVar[bool] = ContextVar("checked", default=False)
"""Whether the module is checked after each pass."""


@contextmanager
def checked_passes() -> Generator[None]:
    """Raise DiagnosticError in the `with` block where a pass leaves a sharding that uses a manual axis around it.

    All tests run in it. The verifier, which few callers run after each pass, says the same of most such shardings.
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

    Operations of other packages' dialects of the same names become ours first.

    Args:
        module: the module that the passes change.
        passes: passes, or their names and options as in `sdy-opt --pass-pipeline`:
            `"sdy-import-pipeline,sdy-basic-propagate{keep-sharding-rules=true}"`.
        ctx: the dialects; all that are known, by default.
        verify_each: verify the module after each pass.
        before_each: called before each pass with the pass and the module.
        after_each: called after each pass with the pass and the module.
        timing: adds up the seconds of each pass.

    Raises:
        DiagnosticError: `passes` does not parse or names an unknown pass; a pass, or verification, refuses the module.
    """
    if isinstance(passes, str):
        from sdy.passes.spec import parse_pipeline

        passes = parse_pipeline(passes)
    steps = passes
    ctx = ctx or context()
    timing = timing or Timing()

    def run() -> None:
        adopt(module)
        for step, told in flatten(steps, module):
            if before_each:
                before_each(step, module)
                invalidate()
            with (
                timing.stage(step.name, told),
                nullcontext() if isinstance(step, AnalysisPreservingPass) else uncached_walks(),
            ):
                step.apply(ctx, module)
            if after_each:
                after_each(step, module)
                invalidate()
            if _checked.get():
                check_manual_axes(module)
            if verify_each:
                with timing.stage("verification"):
                    verify(module)

    with cached_walks():
        on_large_stack_if_deep(module, run)


def propagate(module: ModuleOp, policy: Policy | None = None, *, unify_meshes: bool = True, **options: Any) -> None:
    """Decide the sharding of every tensor of `module`, in place.

    Runs `sdy-propagation-pipeline`; `options` are its options, `conservative_propagation=True` for one. Before that,
    shardings of GSPMD (`mhlo.sharding`) in a module without meshes become those of SDY, as `sdy-import-gspmd` has it,
    composites and batch normalisations become what they are made of, through which shardings pass, and `policy` is
    called with the module's operations, and may choose with `sdy.split` how some are computed. Meshes that cut the same
    devices in several ways become one, unless `unify_meshes` is false. Raises DiagnosticError where the module cannot
    be propagated, TypeError for an option that there is not.
    """
    pipeline = PropagationPipeline(unify_meshes=unify_meshes, **options)
    expand(module, policy)
    run_passes(module, [pipeline])


def expand(module: ModuleOp, policy: Policy | None = None) -> None:
    """The part of `propagate` before the pipeline: bring operations into the form in which shardings pass through."""
    adopt(module)
    import_gspmd(module)
    run_passes(module, [ExpandOperationsPass(), SplitTriangularSolvesPass()])
    if policy is not None:
        run_passes(module, [SymbolDcePass()])
        apply_policy(module, policy)


def import_gspmd(module: ModuleOp) -> None:
    """Bring the shardings of GSPMD that `module` may have to SDY, and what XLA keeps as texts.

    In one that has meshes they are looked for in custom calls, which an exported program that is called in it brings.
    """
    # Not loaded with the passes that most programs ask for.
    from sdy.passes.importing.import_gspmd import (
        ImportGspmdPass,
        has_gspmd_calls,
        has_gspmd_shardings,
        has_texts_of_sdy,
    )

    has_shardings = has_gspmd_calls if named_meshes(module) else has_gspmd_shardings
    if has_texts_of_sdy(module) or has_shardings(module):
        run_passes(module, [ImportGspmdPass()])


def partition(module: ModuleOp, **options: Any) -> None:
    """Turn `module`, whose tensors have shardings, into the program of one device, in place.

    Runs `sdy-partition-pipeline`; `options` are its options. Afterwards each tensor has the shape that one device
    holds, and what devices exchange is explicit as StableHLO collectives. Raises DiagnosticError where an operation
    cannot be partitioned, TypeError for an option that there is not.
    """
    run_passes(module, [PartitionPipeline(**options)])
