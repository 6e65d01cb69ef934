"""Programs that jax lowers for GSPMD give the same results here, and XLA runs what we export for GSPMD."""

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

import forked_commands
import gspmd_in_jax
import sdy
from gspmd_in_jax import PROGRAMS

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("GSPMD")

TOLERANCE = 1e-5


def in_jax(command: str, folder: Path) -> None:
    done = forked_commands.run([gspmd_in_jax.__file__, command, folder])
    if done.returncode == 3:
        pytest.skip("this jax has no GSPMD")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lowered")
    in_jax("lower", folder)
    return folder


@pytest.fixture(scope="module")
def through_hlo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("through_hlo")
    in_jax("through-hlo", folder)
    return folder


@pytest.fixture(scope="module")
def run_by_gspmd(lowered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    for name in PROGRAMS:
        module = sdy.parse((lowered / f"{name}.mlir").read_text())
        sdy.run_passes(module, "sdy-import-gspmd,sdy-export-gspmd")
        (folder / f"{name}.mlir").write_text(sdy.format(module))
    in_jax("run", folder)
    return folder


def expected(name: str) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(PROGRAMS[name])(*gspmd_in_jax.inputs()))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_lowered_for_gspmd_is_compiled(name: str, lowered: Path):
    module = sdy.parse((lowered / f"{name}.mlir").read_text())
    results = sdy.compile(module)(*gspmd_in_jax.inputs())
    for result, wanted in zip(results, expected(name), strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.fixture
def for_gspmd() -> Iterator[None]:
    if not hasattr(jax.config, "jax_use_shardy_partitioner"):
        pytest.skip("this jax has no GSPMD")
    with gspmd_in_jax.lowering_for_gspmd():
        yield


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("for_gspmd")
def test_what_jax_lowers_for_gspmd_now_is_jitted(name: str):
    shardings = gspmd_in_jax.placed("a"), gspmd_in_jax.placed(None, "b")
    results = sdy.jit(PROGRAMS[name], in_shardings=shardings)(*gspmd_in_jax.inputs())
    by_jax = jax.jit(PROGRAMS[name], in_shardings=shardings)(*gspmd_in_jax.inputs())
    for result, wanted in zip(jax.tree.leaves(results), jax.tree.leaves(by_jax), strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_converted_to_hlo_and_back_compiles(name: str, through_hlo: Path):
    """Its shardings, and the manual computations that XLA has inlined, exist only in frontend attributes."""
    module = sdy.parse((through_hlo / f"{name}.mlir").read_text())
    results = sdy.compile(module)(*gspmd_in_jax.inputs())
    for result, wanted in zip(results, expected(name), strict=True):
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_xla_computes_what_is_exported(name: str, run_by_gspmd: Path):
    with np.load(run_by_gspmd / f"{name}.npz") as results:
        for result, wanted in zip(results.values(), expected(name), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=TOLERANCE, atol=TOLERANCE)
