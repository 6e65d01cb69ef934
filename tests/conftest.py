"""Settings that every test shares."""

import os

import pytest

# Before anything initialises JAX: programs run on eight virtual CPU devices.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random-modules", type=int, default=20, help="how many random modules each pass is compared on")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a `random_seed` runs once for each random module."""
    if "random_seed" in metafunc.fixturenames:
        count: int = metafunc.config.option.random_modules
        metafunc.parametrize("random_seed", range(count))
