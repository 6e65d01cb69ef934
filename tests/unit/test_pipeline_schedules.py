"""Pipeline schedules: closed forms of their time and of their memory, bounds, and errors."""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

import sdy
from samples import covering
from sdy.passes.mpmd.schedules import SCHEDULES, Phase, Schedule, Unit, check, schedule
from sdy.passes.mpmd.simulation import simulate

TIMES = [(1.0, 2.0, 1.0), (2.0, 4.0, 2.0), (1.0, 3.0, 1.0), (3.0, 4.0, 2.0), (1.5, 2.5, 1.25)]
"""Seconds of a forward, of a backward, and of its part for weights, of all chunks of a device together."""
DEVICES, MICROBATCHES, CHUNKS = range(1, 9), range(1, 33), range(1, 5)


def steps(name: str, p: int, m: int, v: int, tf: float, tb: float, tw: float) -> float:
    """Return the closed form of the time of a step."""
    ti = tb - tw
    return {
        "gpipe": (m + p - 1) * (tf + tb),
        "1f1b": (m + p - 1) * (tf + tb),
        "interleaved": m * (tf + tb) + (p - 1) * (tf + tb) / v,
        "circular": (v * m + p - 1) * (tf + tb) / v,
        "zb-h1": m * (tf + tb) + (p - 1) * (tf + ti - tw),
        "zb-h2": m * (tf + tb) + (p - 1) * (tf + ti - 2 * tw),
    }[name]


def held(name: str, p: int, m: int, v: int, device: int) -> float:
    """Return the closed form of the activations that a device holds, in microbatches."""
    return {
        "gpipe": m,
        "1f1b": min(m, p - device),
        "interleaved": ((v - 1) * p + 2 * (p - 1 - device) + 1) / v,
        "circular": m,
        "zb-h1": min(m, p),
        "zb-h2": min(m, 2 * p - 1),
    }[name]


def has_closed_form(name: str, p: int, m: int) -> bool:
    """Return whether there are enough microbatches to fill the pipeline, and in rounds of all devices."""
    least = {"interleaved": p, "circular": p, "zb-h1": p, "zb-h2": 2 * p - 1}
    return m >= least.get(name, 1) and (name != "interleaved" or m % p == 0)


@covering
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("p", DEVICES)
def test_closed_forms(name: str, p: int) -> None:
    compared = 0
    for m in MICROBATCHES:
        for v in CHUNKS if SCHEDULES[name].has_chunks else [1]:
            if not has_closed_form(name, p, m):
                continue
            for tf, tb, tw in TIMES if m < 9 or m == 32 else TIMES[:1]:
                if name == "zb-h2" and not tf == tb - tw == tw:
                    continue  # The bubble that forwards fill has the length of one backward each.
                stage = sdy.mpmd.StageCost(tf / v, tb / v, tw / v, held=1 / v)
                predicted = sdy.mpmd.predict([stage] * (p * v), m, schedule=name, devices=p)
                assert predicted.bubble == pytest.approx(1 - m * (tf + tb) / predicted.seconds)
                assert predicted.seconds == pytest.approx(steps(name, p, m, v, tf, tb, tw)), (p, m, v, tf, tb, tw)
                for device in range(p):
                    wanted = min(held(name, p, m, v, device), m)
                    assert predicted.microbatches_held(device) == pytest.approx(wanted), (p, m, v, device)
                    assert predicted.bytes_held(device) == pytest.approx(wanted)
                compared += 1
    assert compared


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_exist_are_complete_and_never_wait_in_a_cycle(name: str) -> None:
    for p in (1, 2, 3, 5, 8):
        for m in range(1, 18):
            for v in (1, 2, 3) if SCHEDULES[name].has_chunks else [1]:
                try:
                    order = schedule(name, p, m, v)
                except ValueError:
                    assert not has_closed_form(name, p, m)
                    continue
                check(order)
                execution = simulate(order, [sdy.mpmd.StageCost(1.0, 2.0)] * order.stages)
                assert execution.devices.period >= 3 * m * v
                assert sum(map(len, order.devices)) == p * v * m * (3 if order.splits_backwards else 2)


def test_an_order_that_waits_in_a_cycle_is_an_error() -> None:
    first = [Unit(Phase.BACKWARD, 0, 0), Unit(Phase.FORWARD, 0, 0)]
    with pytest.raises(ValueError, match="device 0 waits for 0F0 before 0B0, in a cycle"):
        check(Schedule("own", [first], 1))


@pytest.mark.parametrize(
    ("units", "problem"),
    [
        ("0F0", "device 0 does not execute 0B0"),
        ("0F0 0B0 0F0", r"device 0 must not execute 0F0 \(again\)"),
        ("0F0 0B0 1F0", "device 0 must not execute 1F0"),
    ],
)
def test_units_that_are_missing_or_too_many_are_errors(units: str, problem: str) -> None:
    order = [Unit(Phase(each[1]), int(each[0]), int(each[2])) for each in units.split()]
    with pytest.raises(ValueError, match=problem):
        check(Schedule("own", [order], 1))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("1f2b", 4, 8), "there is no schedule '1f2b'; the schedules are gpipe, 1f1b, interleaved"),
        (("1f1b", 4, 0), "'1f1b': the number of microbatches is 0"),
        (("1f1b", 4, 8, 2), "'1f1b' has one stage a device, and there are 8 stages on 4 devices"),
        (("interleaved", 4, 9, 2), "9 microbatches on 4 devices are not a multiple of their 2 rounds; 12 are"),
        (("circular", 4, 3), "3 microbatches are fewer than the 4 devices"),
    ],
)
def test_schedules_that_do_not_fit_are_errors(arguments: tuple[str, int, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        schedule(*arguments)


@pytest.mark.parametrize("function", [sdy.mpmd.predict, sdy.mpmd.compare])
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"devices": 2}, "5 stages are not a multiple of 2 devices"),
        ({"devices": -5}, "5 stages are not a multiple of -5 devices"),
        ({"mesh": sdy.Mesh.of({"x": 5})}, "the mesh has no axis 'stage'; its axes are x"),
        ({"mesh": sdy.Mesh.of({"stage": 2})}, "axis 'stage' of the mesh has size 2; the stages are on 5 devices"),
    ],
)
def test_stages_that_do_not_fit_the_devices_are_errors(
    function: Callable[..., object], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        function([sdy.mpmd.StageCost(1, 2)] * 5, 4, **options)


def test_a_cost_that_contradicts_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="'weights' is 3, more than all of 'backward', 2"):
        sdy.mpmd.StageCost(1, 2, 3)


def test_transfers_take_the_time_of_their_link_and_are_counted() -> None:
    p, m, size = 4, 8, 50e6
    stages = [sdy.mpmd.StageCost(1e-3, 2e-3, sent=size)] * p
    apart, near = (sdy.mpmd.predict(stages, m, hardware=each) for each in ("h100", None))
    # Each microbatch sends its activations forward and its gradients back over every boundary.
    assert apart.execution.bytes == {link: m * size for d in range(p - 1) for link in ((d, d + 1), (d + 1, d))}
    seconds = 1.9e-6 + size / 370e9
    assert apart.seconds > near.seconds + 2 * (p - 1) * seconds * 0.99
    # Between hosts of eight devices, the same bytes take the network.
    hosts = sdy.mpmd.predict(stages, m, hardware="h100", mesh=sdy.Mesh.of({"stage": 4, "model": 8}))
    assert hosts.seconds > apart.seconds


def test_stages_of_different_times_wait_for_the_slowest() -> None:
    stages = [sdy.mpmd.StageCost(each, 2 * each) for each in (1.0, 1.0, 3.0, 1.0)]
    predicted = sdy.mpmd.predict(stages, 32, schedule="1f1b")
    assert predicted.seconds == pytest.approx(2 + 32 * 9 + 4)
    assert predicted.busy(2) == 32 * 9


def test_a_prediction_is_a_readable_table() -> None:
    stages = [sdy.mpmd.StageCost(1e-3, 2e-3, held=1 << 20, sent=1 << 10, state=1 << 30)] * 4
    lines = str(sdy.mpmd.predict(stages, 16, hardware="h100")).splitlines()
    assert lines[0] == "1f1b, 4 devices, 16 microbatches"
    assert re.fullmatch(r"  step 57.1 ms, bubble 15.9%, memory 1 GiB of 80 GiB: fits", lines[1])
    assert [line.split()[0] for line in lines[2:]] == ["device", "0", "1", "2", "3"]


def test_a_timeline_has_a_row_for_each_device_and_link() -> None:
    predicted = sdy.mpmd.predict([sdy.mpmd.StageCost(2, 4, sent=1)] * 2, 2, schedule="zb-h1")
    assert predicted.timeline(14).splitlines() == [
        "  device 0 | FFFF  IIWWIIWW|",
        "  device 1 |   FFIIFFIIWWWW|",
    ]
    events = json.loads(predicted.to_perfetto())["traceEvents"]
    names = [each["args"]["name"] for each in events if each["ph"] == "M"]
    assert names == ["device 0", "device 1", "device 0 to 1", "device 1 to 0"]
    assert len([each for each in events if each["ph"] == "X"]) == 2 * 2 * 3 + 2 * 2


def test_not_to_pipeline_is_an_answer() -> None:
    stages = [sdy.mpmd.StageCost(1e-3, 2e-3, held=1 << 30, state=1 << 30)] * 4
    assert sdy.mpmd.compare(stages, 16, unpipelined=1.0).best is not None
    worse = sdy.mpmd.compare(stages, 16, unpipelined=40e-3)
    assert worse.best is None
    assert str(worse).splitlines()[-1] == "do not pipeline: 40 ms without a pipeline is the least"
    tight = sdy.mpmd.compare([sdy.mpmd.StageCost(1, 2, state=1 << 40)] * 4, 16, hardware="h100")
    assert str(tight).splitlines()[-1] == "no schedule fits into memory"


def test_schedules_that_hold_less_are_chosen_where_memory_is_short() -> None:
    stages = [sdy.mpmd.StageCost(1e-3, 2e-3, held=12 * 2**30)] * 4
    best = sdy.mpmd.compare(stages, 16, hardware="h100").best
    assert best is not None
    assert best.order.name == "zb-h1"


TORCH = {"1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B", "zb-h1": "ScheduleInterleavedZeroBubble"}
"""The class of each schedule in torch."""


@pytest.mark.parametrize("name", TORCH)
def test_orders_equal_those_of_torch(name: str) -> None:
    pipelining = pytest.importorskip("torch.distributed.pipelining.schedules")
    for p in range(2, 9):
        for m in range(p if name != "interleaved" else 1, 17):
            for v in CHUNKS if SCHEDULES[name].has_chunks else [1]:
                try:
                    ours, shape = schedule(name, p, m, v), schedule("interleaved", p, m, v)
                except ValueError:
                    continue
                # torch begins the list of the last device under 1F1B with the second microbatch.
                for device in range(p - (name == "1f1b")):
                    theirs = _torch_order(getattr(pipelining, TORCH[name]), shape, device)
                    assert [*map(str, ours.devices[device])] == theirs, (p, m, v, device)


def _torch_order(kind: type[Any], shape: Schedule, device: int) -> list[str]:
    """Return the order of a device in torch's schedule `kind`, which needs no stages for it."""
    p, m = len(shape.devices), shape.microbatches
    made: Any = object.__new__(kind)
    made.pp_group_size, made.n_local_stages, made._n_microbatches, made._num_stages = p, shape.chunks, m, p
    made.number_of_rounds = max(1, m // p)
    made.microbatches_per_round = m // made.number_of_rounds
    actions = (
        made._get_pipeline_order()[device]
        if kind.__name__ == "Schedule1F1B"
        else made._calculate_single_rank_operations(device)
    )
    names = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}
    return [
        f"{each.stage_index}{names[each.computation_type.name]}{each.microbatch_index}"
        for each in actions
        if each is not None and each.computation_type.name in names
    ]


def test_the_picture_has_the_slices_of_each_device_and_link():
    stages = [sdy.mpmd.StageCost(1.0, 2.0, sent=1 << 20)] * 4
    prediction = sdy.mpmd.predict(stages, 8, schedule="zb-h1", hardware="h100")
    elements = [*ElementTree.fromstring(prediction.to_svg())]
    kinds = Counter(each.get("class") for each in elements)
    assert kinds["lane"] == 4 + 6, "four devices, and three links in each direction"
    assert (kinds["slice W"], kinds["slice F"], kinds["slice I"]) == (4 * 8, (4 + 3) * 8, (4 + 3) * 8)
    (first, *_) = (each for each in elements if each.get("class") == "slice F")
    assert first[0].text == "0F0: 1 s, from 0"
