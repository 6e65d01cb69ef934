"""Installation: a checkout and the sdist give wheels with the same files, which run."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder

from wheels import make_wheel

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("packaging")

CHECKOUT = Path(__file__).parents[2]
FOLDERS = {"sdy": CHECKOUT / "sdy", "sdy/passes": CHECKOUT / "passes", "sdy/tools": CHECKOUT / "tools"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    (archive,) = SdistBuilder(str(CHECKOUT)).build(directory=str(folder))
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return source


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def sources() -> set[str]:
    """Return the paths of the package's files as they should be installed."""
    return {
        f"{name}/{file.relative_to(folder).as_posix()}"
        for name, folder in FOLDERS.items()
        for pattern in ("*.py", "*.toml", "*.html", "*.css", "*.js", "py.typed")
        for file in folder.rglob(pattern)
        if not file.is_relative_to(CHECKOUT / "sdy/passes") and not file.is_relative_to(CHECKOUT / "sdy/tools")
    }


def test_wheels_of_the_checkout_and_of_the_sdist_have_all_files(sdist: Path, tmp_path: Path):
    wheels = [make_wheel(source, tmp_path / name) for name, source in (("checkout", CHECKOUT), ("sdist", sdist))]
    installed = [{file for file in files(wheel) if ".dist-info/" not in file} for wheel in wheels]
    assert installed == [sources()] * 2
    assert {"sdy/passes/driver.py", "sdy/tools/sdy_run.py"} <= sources()


def test_an_sdist_has_the_tests_and_examples(sdist: Path):
    assert {"README.md", "LICENSE", "examples/transformer.mlir", "tests/conftest.py", "passes/driver.py"} <= files(
        sdist
    )


def test_what_the_sdist_installs_runs(sdist: Path, tmp_path: Path):
    wheel = make_wheel(sdist, tmp_path / "installed")
    run = "import sys; from sdy.tools.sdy_opt import main; print(sys.modules['sdy'].__file__); sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", run, "-sdy-propagation-pipeline", str(CHECKOUT / "examples/transformer.mlir")],
        env=os.environ | {"PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.splitlines()[0]).is_relative_to(wheel)
