"""Lines through measured times."""

import jax
import pytest

from sdy.passes.jax.measured_hardware import fitted_line, host_line


def test_a_line_is_found_with_its_error_elsewhere() -> None:
    work = [4.0**place for place in range(9)]
    seconds = [3.0 + amount / 2 for amount in work]
    line = fitted_line(work, seconds)
    assert (line.start, line.rate, line.error) == pytest.approx((3.0, 2.0, 0.0))
    seconds[5] *= 2  # no line is fitted to every other point
    assert fitted_line(work, seconds)[:2] == pytest.approx((3.0, 2.0))
    assert fitted_line(work, seconds).error == pytest.approx(0.5 / 4)


def test_a_line_has_no_negative_start() -> None:
    line = fitted_line([1.0, 2.0, 4.0, 8.0], [1e-3, 2.0, 8.0, 30.0])
    assert (line.start, line.rate) == (0.0, pytest.approx(8 / 30))


def test_transfers_to_the_host_are_measured() -> None:
    """CPUs have that memory, too."""
    line = host_line(jax.devices()[0], [2**12, 2**14, 2**16, 2**18])
    assert line.rate > 0
    assert line.start >= 0
