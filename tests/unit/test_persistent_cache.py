"""Programs partitioned by one process are found by another in jax's persistent compilation cache."""

import json
from pathlib import Path
from typing import Any

import pytest

import cached_programs
import forked_commands

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("persistent cache")


def calls(folder: Path, *names: str) -> dict[str, Any]:
    """Run calls, all by default, in a process with `folder` as its cache, and return the outcome of each."""
    done = forked_commands.run([cached_programs.__file__, folder, *names])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return calls(folder)


def test_a_program_is_partitioned_once(found: dict[str, Any]):
    assert (found["first"]["made"], found["again"]["made"]) == (1, 0)
    assert found["again"]["results"] == found["first"]["results"]


@pytest.mark.parametrize("name", ["other devices", "other shape", "not compared"])
def test_different_program_is_partitioned_separately(name: str, found: dict[str, Any]):
    assert found[name]["made"] == 1


@pytest.mark.parametrize("name", ["policy", "custom partitioning", "annotated"])
def test_program_that_text_does_not_determine_is_not_cached(name: str, found: dict[str, Any]):
    assert (found[name]["made"], found[f"{name} again"]["made"]) == (1, 1)


def test_cached_program_repeats_its_warnings(found: dict[str, Any]):
    assert found["told"]["told"] == found["told again"]["told"] > 0


def test_another_process_finds_what_one_has_made(folder: Path, found: dict[str, Any]):
    names = ("other devices", "other shape", "not compared")
    of_other = calls(folder, *names)
    for name in names:
        assert of_other[name]["made"] == 0
        assert of_other[name]["results"] == found[name]["results"]


def test_damaged_cache_entry_is_recomputed(folder: Path, found: dict[str, Any], tmp_path: Path):
    for entry in folder.iterdir():
        damaged = entry.read_bytes()[:100] if entry.name.startswith("sdy_") else entry.read_bytes()
        (tmp_path / entry.name).write_bytes(damaged)
    anew = calls(tmp_path, "first")
    assert anew["first"]["made"] == 1
    assert anew["first"]["results"] == found["first"]["results"]
