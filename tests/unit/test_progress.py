"""Progress lines of the tools on a terminal; no test depends on timing."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import sdy
from sdy.passes.driver import run_passes
from sdy.passes.pipelines import PartitionPipeline, Pipeline, PropagationPipeline
from sdy.progress import report_to, task, track
from sdy.tools import progress, sdy_auto, sdy_blocks, sdy_diff, sdy_interpret, sdy_opt, sdy_run
from sdy.tools.entry import INTERRUPTED, guarded

NEVER = 3600.0
PATIENCE = 60.0
PROGRAM = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
CONSTANT = """\
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  return %0 : tensor<f32>
}
"""


class PseudoTerminal:
    """A terminal as standard error, which records the output."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.stderr = os.fdopen(slave, "w")
        self._text = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while data := os.read(self.master, 4096):
                with self._changed:
                    self._text += data.decode()
                    self._changed.notify_all()
        except OSError:
            pass  # the other end is closed

    def wait_for(self, text: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: text in self._text, PATIENCE), self._text

    def all(self) -> str:
        """Return the output up to now; output is processed in order."""
        end = f"end {len(self._text)}"
        print(end, file=self.stderr, flush=True)
        self.wait_for(end)
        return self._text.partition(end)[0]


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], PseudoTerminal]]:
    """Return a function that opens a terminal as standard error, after pytest's own redirection."""
    opened: list[PseudoTerminal] = []

    def open_one() -> PseudoTerminal:
        opened.append(PseudoTerminal())
        monkeypatch.setattr(sys, "stderr", opened[-1].stderr)
        return opened[-1]

    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield open_one
    for each in opened:
        each.stderr.close()


class AtOnce:
    """A timer that expires immediately."""

    def __init__(self, delay: float, show: Callable[[], None]) -> None:
        self.start, self.daemon = show, True

    def cancel(self) -> None:
        pass


def test_long_work_is_shown_and_cleared(open_terminal: Callable[[], PseudoTerminal]) -> None:
    terminal = open_terminal()
    with progress.progress(delay=0), task("partition"), task("a pass (2 of 3)"):
        terminal.wait_for("0 s  partition: a pass (2 of 3)")
    text = terminal.all()
    assert text.endswith("\r\x1b[1A\x1b[2K")
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")


def test_short_work_is_not_shown(open_terminal: Callable[[], PseudoTerminal]) -> None:
    terminal = open_terminal()
    with progress.progress(delay=NEVER), task("partition"):
        pass
    assert terminal.all() == ""


def test_no_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress(delay=0), task("partition"):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_diagnostic_stands_above_the_line(
    open_terminal: Callable[[], PseudoTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setattr(progress, "Timer", AtOnce)
    with progress.progress():
        print("[bold] a warning", file=sys.stderr)
    assert "[bold] a warning\r\n" in terminal.all()
    assert sys.stderr is terminal.stderr


def test_an_interrupt_leaves_the_terminal_as_it_was(
    open_terminal: Callable[[], PseudoTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setattr(progress, "Timer", AtOnce)

    def command() -> int:
        with progress.progress(), task("search"):
            signal.raise_signal(signal.SIGINT)
        return 0

    # A shell ignores interrupts in background processes.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert guarded(command) == INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    text = terminal.all()
    assert text.index("\x1b[?25l") < text.index("\x1b[?25h") < text.index("interrupted")
    assert text.endswith("\x1b[2Kinterrupted\r\n")


def test_a_request_to_end_leaves_the_terminal_as_it_was(
    open_terminal: Callable[[], PseudoTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setattr(progress, "Timer", AtOnce)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"), progress.progress(), task("search"):
        signal.raise_signal(signal.SIGTERM)
    assert terminal.all().count("\x1b[?25h") == 1
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("command", "words", "program"),
    [
        (sdy_auto.main, ["--hardware=cpu-8", "--mesh=x=2"], PROGRAM),
        (sdy_blocks.main, ["--check"], PROGRAM),
        (sdy_diff.main, ["--golden=/dev/null"], PROGRAM),
        (sdy_interpret.main, [], CONSTANT),
        (sdy_opt.main, ["-symbol-dce", "-o", "/dev/null"], PROGRAM),
        (sdy_run.main, ["--devices=2"], PROGRAM),
    ],
)
def test_all_tools_show_progress(
    command: Callable[[list[str]], int],
    words: list[str],
    program: str,
    open_terminal: Callable[[], PseudoTerminal],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each tool shows its progress line if that appears at once, and erases it."""
    terminal = open_terminal()
    monkeypatch.setattr(progress, "Timer", AtOnce)
    path = tmp_path / "program.mlir"
    path.write_text(program)
    assert command([str(path), *words]) == 0
    text = terminal.all()
    assert "0 s  " in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")
    assert "0 s  " not in capsys.readouterr().out


def told(work: Callable[[], object]) -> list[str]:
    found: list[str] = []
    with report_to(found.append):
        work()
    return found


def test_passes_of_a_pipeline_are_counted() -> None:
    def work() -> None:
        module = sdy.parse(PROGRAM)
        with task("partition"):
            run_passes(module, [PropagationPipeline(), PartitionPipeline()])

    found = told(work)
    assert found[0] == "partition"
    firsts = [place for place, text in enumerate(found) if "(1 of " in text]
    assert [found[place] for place in firsts] == [
        f"partition: symbol-dce (1 of {firsts[1] - firsts[0]})",
        f"partition: sdy-unify-meshes (1 of {len(found) - firsts[1]})",
    ]


def test_pipelines_list_their_passes_only_for_a_reporter() -> None:
    class Failing(Pipeline):
        name = "failing"

        def passes(self, module: ModuleOp) -> Iterator[ModulePass]:
            raise AssertionError("a pipeline is asked for its passes, though no reporter is set")
            yield

    class Told(ModulePass):
        name = "told"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    module = sdy.parse(PROGRAM)
    assert told(lambda: run_passes(module, [Told()])) == ["told"]
    with pytest.raises(AssertionError), report_to(None):
        run_passes(module, [Failing()])


def test_track_counts_items_if_a_reporter_is_set() -> None:
    assert told(lambda: list(track("block", "ab", lambda: 2))) == ["block 1 of 2", "block 2 of 2"]
    assert list(track("block", "ab", lambda: pytest.fail("no reporter is set"))) == ["a", "b"]


def test_sdy_opt_starts_without_rich() -> None:
    run = "import sys; from sdy.tools.sdy_opt import main; main(['-symbol-dce']); print('rich' in sys.modules)"
    command = [sys.executable, "-c", run]
    done = subprocess.run(command, input="module {\n}\n", capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "False"
