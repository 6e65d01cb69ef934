"""Garbage created while the collector is paused is collected later."""

import gc
import sys
from weakref import ref

import pytest

from sdy import gc_control


class Node:
    """An object in a reference cycle, as operations and blocks are."""

    def __init__(self):
        self.itself = self
        self.content = [object() for _ in range(100_000)]


@pytest.mark.usefixtures("only_new_objects_are_collected")
def test_garbage_of_earlier_blocks_is_collected_when_memory_has_grown():
    gc.collect()
    references: list[ref[Node]] = []
    enough = 2 * sys.getallocatedblocks() // 100_000
    for _ in range(enough):
        gc_control.collect_if_grown()
        with gc_control.paused():
            references.append(ref(Node()))
    alive = sum(node() is not None for node in references)
    assert alive < 0.75 * enough


@pytest.mark.parametrize("is_frozen", [False, True])
def test_live_objects_move_to_the_oldest_generation_unless_the_process_has_frozen_objects(
    is_frozen: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gc_control, "_was_frozen", False)
    frozen = gc.get_freeze_count()
    if not is_frozen:
        gc.unfreeze()
    try:
        with gc_control.paused():
            node = Node()
        assert any(each is node for each in gc.get_objects(generation=2)) != is_frozen
        assert gc.get_freeze_count() == is_frozen * frozen
    finally:
        gc.freeze()


def test_leaves_little_collects_at_the_end_of_the_block():
    with gc_control.paused(leaves_little=True):
        assert not gc.isenabled()
        with gc_control.paused():
            left = ref(Node())
        assert left() is not None
    assert left() is None
    assert gc.isenabled()


@pytest.mark.parametrize("leaves_little", [False, True])
def test_a_disabled_collector_stays_disabled(leaves_little: bool):
    gc.disable()
    try:
        with gc_control.paused(leaves_little=leaves_little):
            left = ref(Node())
        assert left() is not None
        assert not gc.isenabled()
    finally:
        gc.enable()
