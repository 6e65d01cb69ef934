"""Thresholds of lint: the minimum costs of findings, and the savings that a fix needs."""

from dataclasses import dataclass

LEAST_FASTER = 0.2
"""The part of the step time that a fix saves which saves less of the bytes."""


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


@dataclass(frozen=True, slots=True)
class FixThresholds:
    """Savings that a fix needs and costs that it may add, as parts of the costs without it.

    The catalog of rules lists where a rule differs from these defaults. In addition, a fix saves at least
    `Thresholds.large` bytes that are received or held.
    """

    share: float = 0.01
    """Minimum part of the bytes or the memory of a step that is saved."""
    time_share: float | None = None
    """Minimum part of the time of a step that is saved instead, with `Thresholds.large` bytes; `share` by default."""
    many_large: int = 1
    """Minimum bytes that are saved, in multiples of `Thresholds.large`, if they and not the time decide."""
    part: float = 0.0
    """Minimum part of the bytes received for the match that is saved: an all-gather in place of an all-reduce saves
    half."""
    faster: float = 0.0
    """Minimum part of the step time that is saved, while no more bytes are received; 0 if the bytes decide."""
    slower: float = 0.02
    """Maximum growth of the step time while fewer bytes are received: the predicted time is not more exact."""
    growth: float = 0.05
    """Maximum growth of one of bytes, memory and time while another one shrinks."""
    traded: float = 1 / 8
    """Maximum bytes of memory that are taken for each byte that is not received in a step, and the reverse."""
    paying: float = 2.0
    """Minimum seconds of computation that are saved for each second of communication that is added, if more bytes are
    received than memory is saved: links are slower on other hardware."""
    repeating: float = 0.5
    """Minimum part of the step time that is saved if devices repeat more computation than `growth`."""

    @property
    def least_time(self) -> float:
        """The minimum part of the time of a step that is saved."""
        return self.share if self.time_share is None else self.time_share

    @property
    def least_share(self) -> float:
        """The minimum part of a step that a match with such a fix costs."""
        return min(self.share, self.least_time)
