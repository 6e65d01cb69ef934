"""Settings that every test shares."""

import os
from collections.abc import Iterator

import pytest

from sdy.ir.walking import checked_walks

# Before anything initialises JAX: programs run on eight virtual CPU devices, and are compiled soon, not to run fast.
_FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}"
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(autouse=True)
def every_edit_is_told() -> Iterator[None]:
    """Fail where a pass relies on operations that were found before an edit of which `invalidate` was not told."""
    with checked_walks():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random-modules", type=int, default=20, help="how many random modules each pass is compared on")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a `random_seed` runs once for each random module."""
    if "random_seed" in metafunc.fixturenames:
        count: int = metafunc.config.option.random_modules
        metafunc.parametrize("random_seed", range(count))
