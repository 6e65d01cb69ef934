"""`python bench/report.py`: the times to generate a report page, to show its first screen, and to respond to input.

Each page is the report of a transformer's training step, opened from a file in headless Chromium. A response time is
measured from a key or a click to the next painted frame: for a search, for switching to a view, and for the slowest
frame of scrolling through the program. The time to generate a page is processor time. The last row of the table has the
goals.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

import sdy
from measure import lowered

GOALS = {"first screen": 1.0, "search": 0.2, "view": 0.2, "slowest frame": 0.1, "MB": 15.0}
"""The maximal seconds, and megabytes, of a page of 60,000 operations."""

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
    table = Table("layers", "operations", "generated", *GOALS)
    missed = False
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for layers in arguments.layers:
            path = Path(folder) / f"{layers}.html"
            text = lowered(layers)
            start = time.process_time()
            report = sdy.report(sdy.parse(text), hardware="h100-8")
            report.write(path)
            generated = time.process_time() - start
            figures = [*_measured(browser.new_page(), path), path.stat().st_size / 1e6]
            missed |= any(figure > goal for figure, goal in zip(figures, GOALS.values(), strict=True))
            rows = len(report.data["rows"]["op"])
            table.add_row(str(layers), f"{rows:,}", f"{generated:.1f}", *(f"{figure:.3f}" for figure in figures))
    table.add_row("", "", "at most", *map(str, GOALS.values()))
    Console().print(table)
    return int(missed)


def _measured(page: Page, path: Path) -> list[float]:
    """Return the seconds of each response, in the order of the goals."""
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
