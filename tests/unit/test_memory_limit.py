"""Compilation within a memory limit: the limits of rematerialization that are tried."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import sdy
from sdy.passes.jax.compiler_context import CPU_OPTIONS
from sdy.passes.jax.device_hardware import limited_memory_options, offloading_hardware
from sdy.passes.jax.memory_limit import compile_within


@dataclass(eq=False)
class Compiled:
    """A program that needs `memory` bytes."""

    memory: int

    def memory_analysis(self) -> Any:
        return SimpleNamespace(
            argument_size_in_bytes=self.memory,
            output_size_in_bytes=0,
            alias_size_in_bytes=0,
            temp_size_in_bytes=0,
        )


CASES: dict[str, tuple[Callable[[int], int], list[int], int]] = {
    "fits": (lambda limit: limit - 5, [1000], 995),
    "exceeds by a constant": (lambda limit: limit + 100, [1000, 900], 1000),
    "saves a part": (lambda limit: 600 + limit * 6 // 10, [1000, 800, 686, 666], 999),
    "saves none at first": (
        lambda limit: 1001 if limit > 990 else 1002 if limit > 970 else 960,
        [1000, 995, 985, 965],
        960,
    ),
    "saves late": (lambda limit: 1200 if limit > 500 else 950, [1000, 800, 515, 230], 950),
}
"""The memory that a program needs for each limit, the limits that are tried, and the memory of the result."""


@pytest.mark.parametrize("name", CASES)
def test_limits_are_lowered_until_the_program_fits(name: str) -> None:
    memory, limits, needed = CASES[name]
    tried: list[int] = []

    def compile_for(limit: int) -> tuple[Compiled, int]:
        tried.append(limit)
        return Compiled(memory(limit)), limit

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compile_within(1000, compile_for, "step")
    assert tried == limits
    assert isinstance(compiled, Compiled)
    assert compiled.memory == needed


def test_the_program_that_needs_least_is_kept_with_a_warning() -> None:
    memory = {1000: 1500, 500: 1300}
    with pytest.warns(
        sdy.MemoryLimitWarning, match="'step' needs 1.27 KiB of memory .*: 300 bytes more than 1000 bytes"
    ):
        compiled = compile_within(1000, lambda limit: (Compiled(memory.get(limit, 1400)), limit), "step")
    assert isinstance(compiled, Compiled)
    assert compiled.memory == 1300


def test_limits_are_not_lowered_beyond_what_rematerialization_reaches() -> None:
    tried: list[int] = []

    def compile_for(limit: int) -> tuple[Compiled, int]:
        tried.append(limit)
        return Compiled(1100), 950

    with pytest.warns(sdy.MemoryLimitWarning, match="'step' needs"):
        compile_within(1000, compile_for, "step")
    assert tried == [1000, 900]


def test_the_next_limit_is_below_the_predicted_memory() -> None:
    """The same values would be recomputed for a limit above it, and the same program compiled again."""
    tried: list[int] = []

    def compile_for(limit: int) -> tuple[Compiled, int]:
        tried.append(limit)
        return (Compiled(1010), 900) if limit >= 900 else (Compiled(960), 850)

    compile_within(1000, compile_for, "step")
    assert tried == [1000, 899]


def device(platform: str, kind: str, *memories: str) -> Any:
    listed = [SimpleNamespace(kind=memory) for memory in memories]
    return SimpleNamespace(platform=platform, device_kind=kind, addressable_memories=lambda: listed)


@pytest.mark.parametrize(("limit", "percentage"), [(8 << 30, "10"), (1, "1"), (1 << 40, "100")])
def test_the_scheduler_for_gpus_has_a_part_of_the_memory(limit: int, percentage: str) -> None:
    options = limited_memory_options([device("gpu", "NVIDIA H100 80GB HBM3")], limit)
    assert options == {"xla_gpu_memory_limit_slop_factor": percentage}


def test_other_devices_have_no_such_option() -> None:
    assert limited_memory_options([device("cpu", "cpu")], 1) == CPU_OPTIONS
    assert not limited_memory_options([device("tpu", "TPU v5p")], 1)
    assert not limited_memory_options([device("gpu", "unknown")], 1)
    assert not limited_memory_options([], 1)


def test_devices_offload_if_they_have_host_memory_or_are_compiled_for_ahead_of_time() -> None:
    kind = "NVIDIA H100 80GB HBM3"
    assert offloading_hardware([device("gpu", kind, "device", "pinned_host")]) == "h100"
    assert offloading_hardware([device("gpu", kind)]) == "h100"
    assert not offloading_hardware([device("gpu", kind, "device")])
    assert not offloading_hardware([device("cpu", "cpu", "device", "pinned_host")])
