"""The on-disk cache of generated dataclass methods."""

import marshal
import os
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest

from sdy.tools.dataclass_code import DataclassCode

TEXT = "def double(x):\n return 2 * x"


@pytest.fixture(autouse=True)
def may_write(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def test_compiled_code_is_saved_for_the_next_process(tmp_path: Path):
    path = tmp_path / "code"
    code = DataclassCode(path)
    names: dict[str, object] = {}
    code.execute(TEXT, {}, names)
    code.save()
    assert path.read_bytes().startswith(MAGIC_NUMBER)

    kept = compile(TEXT.replace("2", "3"), "<string>", "exec")
    path.write_bytes(MAGIC_NUMBER + marshal.dumps({TEXT: kept}))
    next_names: dict[str, object] = {}
    next_process = DataclassCode(path)
    next_process.execute(TEXT, {}, next_names)
    assert [eval("double(4)", each) for each in (names, next_names)] == [8, 12]


@pytest.mark.parametrize(
    "content", [b"", MAGIC_NUMBER, MAGIC_NUMBER + marshal.dumps({})[:-1], b"other" + marshal.dumps({}), b"\0" * 9]
)
def test_a_file_that_cannot_be_read_is_written_anew(content: bytes, tmp_path: Path):
    path = tmp_path / "code"
    path.write_bytes(content)
    code = DataclassCode(path)
    code.execute(TEXT, {}, {})
    code.save()
    assert [*DataclassCode(path)._cached] == [TEXT]  # pyright: ignore[reportPrivateUsage]
    assert [*tmp_path.iterdir()] == [path]


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path):
    code = DataclassCode(tmp_path / "missing" / "code")
    names: dict[str, object] = {}
    code.execute(TEXT, {}, names)
    code.save()
    assert "double" in names
    assert not [*tmp_path.iterdir()]


def test_a_command_writes_once_what_it_makes_dataclasses_of(tmp_path: Path):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)

    def run() -> str:
        words = [sys.executable, "-m", "sdy", "opt", "-sdy-propagation-pipeline"]
        text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
        return subprocess.run(words, input=text, env=environment, capture_output=True, text=True, check=True).stdout

    first = run()
    (path,) = tmp_path.rglob("*.dataclasses")
    content, written = path.read_bytes(), path.stat().st_mtime_ns
    assert run() == first
    assert path.stat().st_mtime_ns == written
    texts = marshal.loads(memoryview(content)[len(MAGIC_NUMBER) :])
    assert sum("def __eq__" in text for text in texts) > 50
