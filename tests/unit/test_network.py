"""Times of collectives, compared with the published formulas and with measured bus bandwidths, by hand."""

from dataclasses import replace

import pytest

import sdy
from sdy.passes.spmd.costs.hardware import Curve, Hardware, Link, hardware_of
from sdy.passes.spmd.costs.network import Message, Network, torus_shape

GIB = 2**30
H100, V5E, V5P, V7 = map(hardware_of, ("h100", "tpu-v5e", "tpu-v5p", "tpu-v7"))


def seconds(hardware: Hardware, mesh: dict[str, int], kind: str, axes: str, whole: float) -> float:
    """Return the time of a collective whose larger side has `whole` bytes on each device."""
    sizes = [mesh[axis] for axis in axes.split()]
    devices = 1
    for size in sizes:
        devices *= size
    received = {"all_reduce": 2.0, "collective_permute": devices / (devices - 1)}.get(kind, 1.0)
    received *= whole * (devices - 1) / devices
    message = Message(kind, tuple(axes.split()), devices, received, 1)
    return Network(sdy.Mesh.of(mesh), hardware).seconds(message)


def test_an_all_reduce_over_hosts_uses_the_links_of_all_of_their_devices() -> None:
    """nccl-tests measures a bus bandwidth of 365 GB/s on 64 H100s, so that 1 GiB takes 5.8 ms."""
    measured = 2 * 63 / 64 * GIB / 365e9
    assert seconds(H100, {"host": 8, "gpu": 8}, "all_reduce", "host gpu", GIB) == pytest.approx(measured, rel=0.03)
    assert seconds(H100, {"x": 64}, "all_reduce", "x", GIB) == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize("hosts", [2, 8, 64])
@pytest.mark.parametrize("preset", ["a100", "b200", "h100", "h200"])
def test_an_all_reduce_in_two_stages_is_no_faster_on_hosts_of_gpus(preset: str, hosts: int) -> None:
    hardware, mesh = hardware_of(preset), {"host": hosts, "device": 8}
    for whole in (2.0**exponent for exponent in range(14, 32)):
        inside = sum(seconds(hardware, mesh, kind, "device", whole) for kind in ("reduce_scatter", "all_gather"))
        across = seconds(hardware, mesh, "all_reduce", "host", whole / 8)
        assert seconds(hardware, mesh, "all_reduce", "host device", whole) < 1.01 * (inside + across)


def test_an_axis_of_one_device_a_host_has_the_link_between_hosts() -> None:
    assert seconds(H100, {"host": 8, "gpu": 8}, "all_gather", "host", GIB) == pytest.approx(7 / 8 * GIB / 50e9 + 28e-6)


def test_an_axis_of_some_devices_a_host_has_their_links_together() -> None:
    """Along `x`, 4 devices of each host are in a group, which uses their 4 links to other hosts."""
    time = seconds(H100, {"x": 16, "y": 2}, "all_gather", "x", GIB)
    assert time == pytest.approx(15 / 16 * GIB / 200e9 + 12 * 1.9e-6 + 3 * 4e-6)


@pytest.mark.parametrize("mesh", [{"x": 16, "y": 16}, {"x": 256}, {"x": 64, "y": 4}])
def test_axes_of_a_torus_are_used_at_once(mesh: dict[str, int]) -> None:
    """A pod of 16 x 16 chips has 200 GB/s for a group of all of them."""
    time = seconds(V5E, mesh, "all_gather", " ".join(mesh), GIB)
    assert time == pytest.approx(255 / 256 * GIB / 200e9 + 16e-6)


def test_one_axis_of_a_torus_is_a_bidirectional_ring() -> None:
    mesh = {"x": 16, "y": 16}
    assert seconds(V5E, mesh, "all_gather", "x", GIB) == pytest.approx(15 / 16 * GIB / 100e9 + 8e-6)
    assert seconds(V5E, mesh, "reduce_scatter", "x", GIB) == pytest.approx(15 / 16 * GIB / 100e9 + 8e-6)
    assert seconds(V5E, mesh, "all_reduce", "x", GIB) == pytest.approx(2 * (15 / 16 * GIB / 100e9 + 8e-6))


def test_an_all_to_all_on_a_ring_is_bound_by_its_bisection() -> None:
    """On a ring of n devices it takes a quarter of an all-gather of all n parts (the JAX scaling book)."""
    mesh = {"x": 16, "y": 16}
    assert seconds(V5E, mesh, "all_to_all", "x", GIB) == pytest.approx(16 * GIB / 4 / 100e9 + 8e-6)
    assert seconds(H100, {"x": 8}, "all_to_all", "x", GIB) == pytest.approx(7 / 8 * GIB / 370e9 + 7 * 1.9e-6)


def test_a_permute_uses_one_direction_of_a_ring() -> None:
    assert seconds(V5E, {"x": 16, "y": 16}, "collective_permute", "x", GIB) == pytest.approx(GIB / 50e9 + 1e-6)


def test_a_part_of_an_axis_of_a_torus_is_a_line() -> None:
    """8 chips of v5e are 2 x 4, without links from the last to the first; 64 of v5p are 4 x 4 x 4 with them."""
    assert seconds(V5E, {"x": 8}, "all_gather", "x", GIB) == pytest.approx(7 / 8 * GIB / 100e9 + 4e-6)
    assert seconds(V5P, {"x": 64}, "all_gather", "x", GIB) == pytest.approx(63 / 64 * GIB / 600e9 + 6e-6)
    assert seconds(V5P, {"x": 16, "y": 4}, "all_gather", "x", GIB) == pytest.approx(15 / 16 * GIB / 400e9 + 4e-6)


def test_the_devices_of_a_chip_share_its_links() -> None:
    time = seconds(V7, {"x": 128}, "all_gather", "x", GIB)
    assert time == pytest.approx(127 / 128 * GIB / 600e9, rel=0.05)


def test_latency_counts_steps() -> None:
    """A short all-gather takes n - 1 steps; a short all-reduce goes up and down a tree."""
    assert seconds(H100, {"x": 8}, "all_gather", "x", 8) == pytest.approx(7 * 1.9e-6, rel=1e-3)
    assert seconds(H100, {"x": 8}, "all_reduce", "x", 8) == pytest.approx(6 * 1.9e-6, rel=1e-3)
    assert seconds(V5E, {"x": 256}, "all_reduce", "x", 8) == pytest.approx(2 * 16e-6, rel=1e-3)


def test_an_axis_can_have_a_link_of_its_own() -> None:
    slow = replace(H100, axes={"data": Link(1e8, 1e-3)})
    mesh = {"data": 2, "model": 4}
    assert seconds(slow, mesh, "all_gather", "data", GIB) == pytest.approx(GIB / 2 / 1e8 + 1e-3)
    assert seconds(slow, mesh, "all_gather", "model", GIB) == pytest.approx(3 / 4 * GIB / 370e9 + 3 * 1.9e-6)


def test_a_link_of_no_axis_of_the_mesh_is_an_error() -> None:
    slow = replace(H100, axes={"dcn": Link(1e8, 1e-3)})
    with pytest.raises(sdy.DiagnosticError, match=r"'axes\.dcn' is the link of no axis of the mesh; its axes are 'da"):
        Network(sdy.Mesh.of({"data": 8}), slow)


def test_devices_beyond_the_last_link_have_that_link() -> None:
    one = replace(H100, links=H100.links[:1])
    assert seconds(one, {"x": 16}, "all_gather", "x", GIB) == pytest.approx(15 / 16 * GIB / 370e9, rel=0.1)


def test_a_sub_axis_has_fewer_devices_than_its_axis() -> None:
    message = Message("all_gather", ("x",), 4, 3 / 4 * GIB, 1)
    assert Network(sdy.Mesh.of({"x": 16, "y": 16}), V5E).seconds(message) == pytest.approx(3 / 4 * GIB / 50e9 + 3e-6)


@pytest.mark.parametrize(
    ("devices", "shape"), [(1, (1, 1, 1)), (5, (1, 1, 5)), (64, (4, 4, 4)), (128, (4, 4, 8)), (8960, (16, 20, 28))]
)
def test_a_slice_is_close_to_a_cube(devices: int, shape: tuple[int, ...]) -> None:
    assert torus_shape(devices, (16, 20, 28)) == shape


def test_a_measured_curve_takes_precedence_for_its_kind_and_number_of_devices() -> None:
    measured = replace(H100, curves={("all_gather", 4): Curve((1e3, 1e6), (1e-3, 1.0))})
    mesh = {"data": 2, "model": 4}
    assert seconds(measured, mesh, "all_gather", "model", 4e6 / 3) == pytest.approx(1.0)
    for kind, axes in (("all_gather", "data"), ("all_gather", "data model"), ("reduce_scatter", "model")):
        assert seconds(measured, mesh, kind, axes, GIB) == seconds(H100, mesh, kind, axes, GIB)
