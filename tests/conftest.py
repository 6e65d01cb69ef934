"""Settings that every test shares."""

import gc
from collections.abc import Iterator

import pytest

import virtual_devices
from corpus import PROGRAMS
from sdy.ir.walking import checked_walks

virtual_devices.set_up()

_ONE_IN = 5
"""Of so many programs of the corpus, one is tested where not all are."""


@pytest.fixture(autouse=True)
def every_edit_is_told() -> Iterator[None]:
    """Fail where a pass relies on operations that were found before an edit of which `invalidate` was not told."""
    with checked_walks():
        yield


@pytest.fixture
def only_new_objects_are_collected() -> Iterator[None]:
    """Let `gc.collect` in a test not look at all that the tests before it have left, which takes seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--random-modules", type=int, default=20, help="how many random modules each pass is compared on")
    parser.addoption("--damaged-bytecode", type=int, default=300, help="how many damaged bytecodes are read")
    parser.addoption("--every-program", action="store_true", help="all of the corpus where some of it is a sample")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a `random_seed` runs once for each random module; one that takes a `program_name`, for some
    programs of the corpus or all."""
    if "random_seed" in metafunc.fixturenames:
        count: int = metafunc.config.option.random_modules
        metafunc.parametrize("random_seed", range(count))
    if "program_name" in metafunc.fixturenames:
        metafunc.parametrize("program_name", [*PROGRAMS][:: 1 if metafunc.config.option.every_program else _ONE_IN])
