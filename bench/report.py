"""`python bench/report.py`: how long a page takes to be made, to show its first screen, and to react.

Each page is that of a transformer's training step, opened in headless Chromium from a file. A reaction is the time from
a key or a click to the next frame that is painted: for a search, for a view that is opened, and for the slowest frame
while the whole program is scrolled through. Nothing else shows a program's layout with its costs, so beside it stands
what is asked of it.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import lowered
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

import sdy

GOALS = {"first screen": 3.0, "search": 0.2, "view": 0.2, "slowest frame": 0.1, "MB": 15.0}
"""Seconds, and megabytes, that a page of 60,000 operations takes at most."""

_FRAME = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"

_SCROLL = """async () => {
  const rows = document.querySelector(".rows");
  let slowest = 0;
  for (let step = 0; step <= 200; step += 1) {
    const start = performance.now();
    rows.scrollTop = (rows.scrollHeight * step) / 200;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    slowest = Math.max(slowest, performance.now() - start);
  }
  return slowest / 1000;
}"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 12, 48, 192])
    arguments = parser.parse_args(argv)
    table = Table("layers", "operations", "made", *GOALS)
    missed = False
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for layers in arguments.layers:
            path = Path(folder) / f"{layers}.html"
            start = time.perf_counter()
            report = sdy.report(sdy.parse(lowered(layers)), hardware="h100-8")
            report.write(path)
            made = time.perf_counter() - start
            figures = [*_measured(browser.new_page(), path), path.stat().st_size / 1e6]
            missed |= any(figure > goal for figure, goal in zip(figures, GOALS.values(), strict=True))
            rows = len(report.found["rows"]["op"])
            table.add_row(str(layers), f"{rows:,}", f"{made:.1f}", *(f"{figure:.3f}" for figure in figures))
    table.add_row("", "", "at most", *map(str, GOALS.values()))
    Console().print(table)
    return int(missed)


def _measured(page: Page, path: Path) -> list[float]:
    """The seconds of each reaction, in the order of the goals."""
    first = _timed(lambda: page.goto(f"{path.as_uri()}#view=program"), page)
    searched = _timed(lambda: page.get_by_role("searchbox").fill("dot_general"), page)
    page.get_by_role("searchbox").fill("")
    opened = _timed(lambda: page.get_by_role("link", name="arrays").click(), page)
    page.get_by_role("link", name="program").click()
    return [first, searched, opened, page.evaluate(_SCROLL)]


def _timed(act: Callable[[], object], page: Page) -> float:
    start = time.perf_counter()
    act()
    page.evaluate(_FRAME)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
