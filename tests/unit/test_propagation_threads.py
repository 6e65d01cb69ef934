"""Threads that propagate at the same time share memoized steps."""

import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from sdy.mesh import Mesh
from sdy.passes.propagation import step
from sdy.passes.propagation.step import Steps, memoized_steps


class _Number(int):
    """The number of steps that are too many; adding it takes long, as to add those of many meshes."""

    def __radd__(self, other: int) -> int:
        return sum(range(100)) + other


def many_steps(meshes: Mapping[str, Mesh]) -> Steps:
    return Steps(meshes, count=_Number(2**16 + 1))


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_add_meshes_while_others_count_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "_steps", dict[object, Steps]())
    monkeypatch.setattr(step, "Steps", many_steps)

    def ask(thread: int) -> None:
        for number in range(200):
            memoized_steps({f"mesh{thread}": Mesh((("x", number + 1),))})

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(ask, thread) for thread in range(8)]:
            done.result()
