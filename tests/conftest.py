"""Settings that every test shares."""

import gc
from collections.abc import Iterator

import pytest

import samples
import virtual_devices
from sdy.ir.walking import checked_walks
from sdy.passes.account.lint.failures import raised_failures
from sdy.passes.driver import checked_passes

virtual_devices.set_up()


@pytest.fixture(autouse=True)
def every_edit_invalidates_walks() -> Iterator[None]:
    """Fail if a pass uses a cached walk after an edit without calling `invalidate`.

    A sample is checked: small modules, whose walks take little time.
    """
    with checked_walks() if samples.is_thorough() else checked_walks(most=64):
        yield


@pytest.fixture(autouse=True)
def no_value_is_split_along_its_manual_axes() -> Iterator[None]:
    """Fail where a pass splits a value within a manual computation along one of its manual axes."""
    with checked_passes():
        yield


@pytest.fixture(autouse=True)
def no_rule_of_lint_fails() -> Iterator[None]:
    """Fail where a rule of lint, or the trial of a fix, raises an exception: lint warns of it and goes on."""
    with raised_failures():
        yield


@pytest.fixture
def only_new_objects_are_collected() -> None:
    """Exclude the objects of earlier tests from `gc.collect` in a test, which would take seconds."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="all cases where some are a sample")
    parser.addoption(
        "--before-landing", action="store_true", help="all golden layouts, and a lit test that trains a model"
    )
    parser.addoption("--random-modules", type=int, default=4, help="how many random modules each pass is compared on")
    parser.addoption("--damaged-bytecode", type=int, default=10, help="how many damaged bytecodes are read")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run tests that the command line names one by one in this process, and others on all cores."""
    return 0 if all("::" in argument for argument in config.args) else None


def pytest_configure(config: pytest.Config) -> None:
    samples.choose(thorough=config.option.thorough, before_landing=config.option.before_landing)
    config.addinivalue_line("markers", f"{samples.covering.name}: run enough combinations that each value occurs")
    config.addinivalue_line("markers", f"{samples.large.name}: run with --thorough only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests and the combinations of parameters that only `--thorough` runs."""
    if removed := samples.deselected(items):
        config.hook.pytest_deselected(items=[*removed])
        items[:] = [item for item in items if item not in removed]


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which would traverse them again and again."""
    gc.collect()
    gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a `random_seed` runs once for each random module."""
    if "random_seed" in metafunc.fixturenames:
        count: int = metafunc.config.option.random_modules
        metafunc.parametrize("random_seed", range(count))
