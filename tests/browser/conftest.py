"""A real browser, headless, for tests of what a person sees and does."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

expect.set_options(timeout=60_000)  # milliseconds: the machine may be busy

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without any, tests are skipped, but for where all tests have to run."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        assert not os.environ.get("CI"), "no Chromium to test pages in: apt-get install chromium"
        pytest.skip("no Chromium to test pages in: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
