"""Thresholds of lint."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum costs of findings, in bytes per device unless stated otherwise; each is an option of `sdy-lint`."""

    large: int = 2**20
    """Minimum cost of a finding, summed over equal occurrences."""
    replicated: int = 2**28
    """Minimum cost of a `replicated-tensor` finding; good layouts replicate all but very large tensors."""
    small: int = 2**16
    """Size below which a collective is small: its time is latency, whatever its bytes."""
    many: int = 32
    """Minimum number of small collectives of one source line."""
