"""`PYTHONPATH=examples python docs/report_picture.py` takes the picture with which the README begins anew."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import sdy
import transformer

PICTURE = Path(__file__).with_name("report.png")


def main() -> None:
    """Open the report of examples/transformer.py in Chromium, with the largest collective shown."""
    module = sdy.parse(transformer.lower(2).as_text(debug_info=True), "transformer")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        sdy.report(module, hardware="h100-8").write(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 700})
        page.goto(f"{path.as_uri()}#show=c0")
        page.screenshot(path=PICTURE)


if __name__ == "__main__":
    main()
