"""Garbage that is made while Python's collector is paused is collected all the same, in time."""

import gc
import sys
from weakref import ref

import pytest

from sdy import collector


class Node:
    """What refers to itself, as an operation does by way of its block."""

    def __init__(self):
        self.itself = self
        self.filled = [object() for _ in range(100_000)]


def test_what_earlier_blocks_have_left_is_collected_when_memory_has_grown():
    gc.collect()
    made: list[ref[Node]] = []
    enough = 2 * sys.getallocatedblocks() // 100_000
    for _ in range(enough):
        collector.collect_if_grown()
        with collector.paused():
            made.append(ref(Node()))
    alive = sum(node() is not None for node in made)
    assert alive < 0.75 * enough


def test_what_a_block_leaves_is_collected_at_its_end():
    with collector.paused(leaves_little=True):
        assert not gc.isenabled()
        with collector.paused():
            left = ref(Node())
        assert left() is not None
    assert left() is None
    assert gc.isenabled()


@pytest.mark.parametrize("leaves_little", [False, True])
def test_what_is_not_the_collectors_to_collect_stays(leaves_little: bool):
    gc.disable()
    try:
        with collector.paused(leaves_little=leaves_little):
            left = ref(Node())
        assert left() is not None
        assert not gc.isenabled()
    finally:
        gc.enable()
